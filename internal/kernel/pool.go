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
type Pool struct {
	threads int
	wake    chan struct{}
	mu      sync.Mutex // one job at a time
	job     Job
	n       int64
	grain   int64
	next    atomic.Int64
	done    sync.WaitGroup
}

var pools sync.Map // threads → *Pool

// SharedPool returns the program's pool of that many threads; 0 means GOMAXPROCS.
func SharedPool(threads int) *Pool {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	p, loaded := pools.LoadOrStore(threads, &Pool{threads: threads, wake: make(chan struct{})})
	pool := p.(*Pool)
	if !loaded {
		for range threads - 1 {
			go pool.worker()
		}
	}
	return pool
}

func (p *Pool) worker() {
	for range p.wake {
		p.drain()
		p.done.Done()
	}
}

// drain takes blocks of rows until none is left.
func (p *Pool) drain() {
	for {
		lo := p.next.Add(p.grain) - p.grain
		if lo >= p.n {
			return
		}
		p.job.Run(int(lo), int(min(lo+p.grain, p.n)))
	}
}

// Do runs rows [0, n) of the job in blocks of grain rows and returns when all are done. A job must not call Do.
func (p *Pool) Do(n, grain int, job Job) {
	helpers := min(p.threads, (n+grain-1)/grain) - 1
	if helpers <= 0 {
		job.Run(0, n)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.job, p.n, p.grain = job, int64(n), int64(grain)
	p.next.Store(0)
	p.done.Add(helpers)
	for range helpers {
		p.wake <- struct{}{}
	}
	p.drain()
	p.done.Wait()
	p.job = nil
}
