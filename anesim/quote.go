package anesim

import (
	"math"

	"anelab/chunking"
)

// Quote is the price of a decode step without its parts.
type Quote struct {
	Seconds    float64
	TimeRange  Range
	BoundBy    string  // the resource that takes most of the token, host included
	BoundShare float64 // of the time
}

// Quoter quotes many plans of one device and workload: [Predict]'s time and interval at a cost that allows a million of them.
// Not safe for concurrent use: give each goroutine its own.
type Quoter struct {
	device    Device
	copyBack  CopyBack
	estimates map[quoted]chunkEstimate
	plan      []chunkEstimate // of the plan in hand
}

// quoted is what the estimate of a chunk depends on once its plan's settings are fixed, as they are in the chunk.
type quoted struct {
	chunk *chunking.Chunk
	first bool // imports what the chunk before it wrote
}

// NewQuoter returns a quoter that has seen no chunk yet.
func NewQuoter(d Device, w Workload) *Quoter {
	return &Quoter{device: d, copyBack: w.copyBack(), estimates: map[quoted]chunkEstimate{}}
}

// Quote prices a plan.
func (qr *Quoter) Quote(p *chunking.Plan) Quote {
	d := &qr.device
	qr.plan = qr.plan[:0]
	var sum Quantities
	host := d.hostSeconds(p.Context)
	seconds := 0.0
	for i := range p.Chunks {
		e := qr.estimate(p, i)
		qr.plan = append(qr.plan, e)
		sum.add(&e.q)
		seconds += e.seconds
	}
	seconds += host
	out := Quote{Seconds: seconds, TimeRange: d.aroundToken(seconds, math.Hypot(d.sd(qr.plan...), d.hostSD(p.Context)))}
	out.BoundBy, out.BoundShare = d.boundOf(&sum, host, seconds)
	return out
}

func (qr *Quoter) estimate(p *chunking.Plan, i int) chunkEstimate {
	key := quoted{p.Chunks[i], importsFirst(p, i)}
	e, known := qr.estimates[key]
	if !known {
		q := quantitiesOf(key.chunk, p.Model, qr.copyBack)
		if key.first {
			q[HandoffFirst] = 1
		}
		e = qr.device.estimate(p, i, q)
		qr.estimates[key] = e
	}
	return e
}

// boundOf is the resource with the largest share of a token; the first in the order of terms wins a tie.
func (d *Device) boundOf(q *Quantities, host, total float64) (resource string, share float64) {
	var sums [NumTerms]float64 // by the first term of the resource
	for t := range chunkTerms {
		sums[firstOf[t]] += d.Constants[t].Value * q[t]
	}
	sums[HostStep] = host
	for t, s := range sums {
		if s/total > share {
			resource, share = Term(t).Resource(), s/total
		}
	}
	return resource, share
}

// firstOf is the first term with the resource of a term.
var firstOf = func() (first [NumTerms]Term) {
	for t := range NumTerms {
		for first[t] = 0; first[t].Resource() != t.Resource(); first[t]++ {
		}
	}
	return first
}()
