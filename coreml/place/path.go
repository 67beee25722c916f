package place

import (
	"math"
	"slices"
)

// Backend is one of the places that an op can run.
type Backend uint8

// The backends that texts record, and the GPU, which takes whole programs only. CPU has two libraries.
const (
	ANE Backend = iota
	BNNS
	ClassicCPU
	GPU
	backends = 3 // those with estimates
)

// String is the name that texts use.
func (b Backend) String() string { return [...]string{"ane", "bnns", "classic_cpu", "gpu"}[b] }

// Unit is ANE, CPU or GPU.
func (b Backend) Unit() string { return [...]string{"ANE", "CPU", "CPU", "GPU"}[b] }

// Seconds are estimates by backend; +Inf where the backend does not take the op.
type Seconds [backends]float64

// refused is the estimate of a backend that does not take an op.
var refused = math.Inf(1)

// Costs are what a path pays besides its ops.
type Costs struct {
	EnterSeconds  float64 // the first op is on the engine
	ChangeSeconds float64 // two ops in a row are on different backends, the two of the CPU included
	LeaveSeconds  float64 // the last op is on the engine
}

// DefaultCosts are those that every known text records.
var DefaultCosts = Costs{EnterSeconds: 0.125e-3, ChangeSeconds: 0.125e-3, LeaveSeconds: 0.125e-3}

func (c Costs) enter(b Backend) float64 {
	if b == ANE {
		return c.EnterSeconds
	}
	return 0
}

func (c Costs) leave(b Backend) float64 {
	if b == ANE {
		return c.LeaveSeconds
	}
	return 0
}

func (c Costs) change(a, b Backend) float64 {
	if a != b {
		return c.ChangeSeconds
	}
	return 0
}

// Cost is what a path costs; +Inf if a backend does not take its op.
func Cost(steps []Seconds, path []Backend, c Costs) float64 {
	if len(steps) == 0 {
		return 0
	}
	sum := c.enter(path[0]) + c.leave(path[len(path)-1])
	for i, s := range steps {
		sum += s[path[i]]
		if i > 0 {
			sum += c.change(path[i-1], path[i])
		}
	}
	return sum
}

// tie is the difference below which two paths cost the same; sums of milliseconds are exact to 1e-18.
const tie = 1e-13

// partial is the best way to have one op on one backend, from one side.
type partial struct {
	seconds float64 // the op included
	changes int
	next    Backend // the neighbour's
}

// better prefers the cheaper, and of equals the one with fewer changes.
func (p partial) better(q partial) bool {
	if math.Abs(p.seconds-q.seconds) > tie || math.IsInf(q.seconds, 1) {
		return p.seconds < q.seconds
	}
	return p.changes < q.changes
}

// Paths are the cheapest paths through a sequence of ops.
type Paths struct {
	Best    []Backend
	Seconds float64   // of the best
	Through []Seconds // of the best that has op i on backend b
}

// Cheapest finds the cheapest path. Of paths that cost the same it is one with the fewest changes of backend; compilers choose
// among those by a rule that is not known, so compare costs.
func Cheapest(steps []Seconds, c Costs) Paths {
	p := Paths{Best: make([]Backend, len(steps)), Through: make([]Seconds, len(steps))}
	if len(steps) == 0 {
		return p
	}
	ahead, behind := sweep(steps, c, c.leave), reversed(sweep(reversed(steps), c, c.enter))
	best := partial{seconds: refused}
	for b := ANE; b < backends; b++ {
		at := ahead[0][b]
		if at.seconds += c.enter(b); at.better(best) {
			best, p.Best[0] = at, b
		}
	}
	p.Seconds = best.seconds
	for i := range steps {
		if i > 0 {
			p.Best[i] = ahead[i-1][p.Best[i-1]].next
		}
		for b := range steps[i] {
			p.Through[i][b] = ahead[i][b].seconds + behind[i][b].seconds - steps[i][b]
			if math.IsInf(steps[i][b], 1) {
				p.Through[i][b] = refused
			}
		}
	}
	return p
}

// sweep is, for every op and backend, the best way from it to the end.
func sweep(steps []Seconds, c Costs, end func(Backend) float64) [][backends]partial {
	all := make([][backends]partial, len(steps))
	last := len(steps) - 1
	for i := last; i >= 0; i-- {
		for b := ANE; b < backends; b++ {
			at := partial{seconds: steps[i][b] + end(b)}
			if i < last {
				at = partial{seconds: refused}
				for n := ANE; n < backends; n++ {
					way := partial{seconds: steps[i][b] + c.change(b, n) + all[i+1][n].seconds, changes: all[i+1][n].changes, next: n}
					if n != b {
						way.changes++
					}
					if way.better(at) {
						at = way
					}
				}
			}
			all[i][b] = at
		}
	}
	return all
}

func reversed[T any](s []T) []T {
	r := slices.Clone(s)
	slices.Reverse(r)
	return r
}
