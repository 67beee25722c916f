package kernel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Job is work on independent rows. Run must touch only what belongs to rows [lo, hi).
type Job interface {
	Run(lo, hi int)
}

// Pool shares the rows of a [Job] among goroutines that live as long as the program. How rows are shared never changes a
// result, because rows are independent. Do allocates nothing.
//
// A decoded token is some 500 jobs of a tenth of a millisecond, and waking a thread takes the system half as long. So workers look for the
// next job for a while before they sleep, and whoever waits for them looks for a while, too.
type Pool struct {
	threads int
	looks   int // patience
	workers []*worker
	mu      sync.Mutex // one job at a time
	job     Job
	n       int64
	grain   int64
	next    atomic.Int64
	inside  atomic.Int32  // workers on the job; closed when there is none
	epoch   atomic.Uint32 // number of jobs so far
	waiting atomic.Bool   // Do sleeps until inside is zero
	idle    chan struct{}
}

// closed is the value of inside that lets no worker in.
const closed = -1

// worker is one goroutine of a pool.
type worker struct {
	asleep atomic.Bool
	wake   chan struct{}
}

var pools sync.Map // threads → *Pool

// SharedPool returns the program's pool of that many threads; 0 means GOMAXPROCS.
func SharedPool(threads int) *Pool {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	p, loaded := pools.LoadOrStore(threads, newPool(threads))
	pool := p.(*Pool)
	if !loaded {
		for _, w := range pool.workers {
			go pool.work(w)
		}
	}
	return pool
}

func newPool(threads int) *Pool {
	p := &Pool{threads: threads, looks: patience(threads), idle: make(chan struct{}, 1)}
	p.inside.Store(closed)
	for range threads - 1 {
		p.workers = append(p.workers, &worker{wake: make(chan struct{}, 1)})
	}
	return p
}

// patience is how often a waiting thread looks again before it sleeps, some 0.1 ms. Where goroutines share a core, looking keeps
// the one that is waited for from running.
func patience(threads int) int {
	if threads > runtime.GOMAXPROCS(0) {
		return 0
	}
	return 3000
}

func (p *Pool) work(w *worker) {
	var seen uint32
	for {
		seen = p.await(w, seen)
		if p.enter() {
			p.drain()
			p.leave()
		}
	}
}

// await returns the number of jobs once it is no longer seen.
func (p *Pool) await(w *worker, seen uint32) uint32 {
	for range p.looks {
		if e := p.epoch.Load(); e != seen {
			return e
		}
		pause()
	}
	w.asleep.Store(true)
	if p.epoch.Load() == seen || !w.asleep.CompareAndSwap(true, false) {
		<-w.wake
	}
	return p.epoch.Load()
}

// enter joins the job unless it is closed.
func (p *Pool) enter() bool {
	for {
		n := p.inside.Load()
		if n == closed {
			return false
		}
		if p.inside.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (p *Pool) leave() {
	if p.inside.Add(-1) == 0 && p.waiting.CompareAndSwap(true, false) {
		p.idle <- struct{}{}
	}
}

// drain takes blocks of rows until none is left: a good part of what is left each time, so that most rows are read in one go, and grain
// rows at the end, so that all threads end together.
func (p *Pool) drain() {
	for {
		lo := p.next.Load()
		if lo >= p.n {
			return
		}
		size := max((p.n-lo)/int64(3*p.threads)/p.grain, 1) * p.grain
		if p.next.CompareAndSwap(lo, lo+size) {
			p.job.Run(int(lo), int(min(lo+size, p.n)))
		}
	}
}

// Do runs rows [0, n) of the job in blocks of grain rows or multiples and returns when all are done. A job must not call Do.
func (p *Pool) Do(n, grain int, job Job) {
	if p.threads == 1 || n <= grain {
		if n > 0 {
			job.Run(0, n)
		}
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.job, p.n, p.grain = job, int64(n), int64(grain)
	p.next.Store(0)
	p.inside.Store(0)
	p.epoch.Add(1)
	for _, w := range p.workers {
		if w.asleep.CompareAndSwap(true, false) {
			w.wake <- struct{}{}
		}
	}
	p.drain()
	p.close()
	p.job = nil
}

// close waits until no worker is on the job and lets none in any more.
func (p *Pool) close() {
	for {
		for range p.looks + 1 {
			if p.inside.CompareAndSwap(0, closed) {
				return
			}
			pause()
		}
		p.waiting.Store(true)
		if p.inside.Load() != 0 || !p.waiting.CompareAndSwap(true, false) {
			<-p.idle
		}
	}
}
