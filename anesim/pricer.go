package anesim

import "anelab/chunking"

// Pricer prices many plans of one device and workload. A chunk does not know its neighbours, so its time is computed once
// and pricing a plan is a sum. Not safe for concurrent use: give each goroutine its own.
type Pricer struct {
	device   Device
	copyBack CopyBack
	times    map[*chunking.Chunk]float64 // s, without the first-import term
}

// NewPricer returns a pricer with nothing priced yet.
func NewPricer(d Device, w Workload) *Pricer {
	return &Pricer{device: d, copyBack: w.copyBack(), times: map[*chunking.Chunk]float64{}}
}

// Seconds is the predicted time per token, the same as [Predict]'s up to rounding.
func (pr *Pricer) Seconds(p *chunking.Plan) float64 {
	s := pr.device.hostSeconds(p.Context)
	for i, c := range p.Chunks {
		s += pr.chunk(c, p.Model)
		if importsFirst(p, i) {
			s += pr.device.Constants[HandoffFirst].Value
		}
	}
	return s
}

// Chunks are shared between plans, so the pointer is the key.
func (pr *Pricer) chunk(c *chunking.Chunk, m *chunking.Model) float64 {
	s, ok := pr.times[c]
	if !ok {
		q := quantitiesOf(c, m, pr.copyBack)
		s = pr.device.seconds(&q)
		pr.times[c] = s
	}
	return s
}

// ChunkSeconds is the time of one chunk's call, but for what it pays when it comes right behind the chunk that wrote its
// imports: [Pricer.FirstImportSeconds].
func (pr *Pricer) ChunkSeconds(c *chunking.Chunk, m *chunking.Model) float64 { return pr.chunk(c, m) }

// FirstImportSeconds is paid by a chunk that imports keys and values if the chunk before it exported any.
func (pr *Pricer) FirstImportSeconds() float64 { return pr.device.Constants[HandoffFirst].Value }

// HostSeconds is the time per token outside the chunk calls.
func (pr *Pricer) HostSeconds(context int) float64 { return pr.device.hostSeconds(context) }
