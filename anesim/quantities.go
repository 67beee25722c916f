package anesim

import "anelab/chunking"

// Quantities is what a chunk hands to each chunk term: seconds of a term = constant · quantity.
type Quantities [chunkTerms]float64

// CopyBack says where the host copies the caches that a call returned (data README §3).
type CopyBack string

// The two builds that were measured, and calls without any copy. Only the first puts the copy inside the timed call.
const (
	CopyBackSync  CopyBack = "sync"
	CopyBackAsync CopyBack = "async"
	CopyBackNone  CopyBack = "none"
)

// quantitiesOf reads a chunk of a plan for one call. The first-import term depends on the chunk before and is added by
// [importsFirst].
func quantitiesOf(c *chunking.Chunk, m *chunking.Model, copyBack CopyBack) Quantities {
	var q Quantities
	q[Dispatch] = 1
	q[WeightStream] = float64(c.Totals.WeightBytes)
	for _, op := range c.Ops {
		if op.Kind == chunking.OpAttention {
			q.addAttention(op, m)
		}
	}
	if c.Totals.HandoffInBytes > 0 {
		q[HandoffBytes], q[HandoffCall] = float64(c.Totals.HandoffInBytes), 1
	}
	if copyBack == CopyBackSync {
		q[CopyBackBytes] = float64(c.Totals.CacheInBytes)
	}
	if c.Totals.PLEModel {
		q[PLEProjection] = 1
	}
	return q
}

// addAttention counts the positions that a full layer's static graph works on: MACs are 2·H·d per position (spec
// forward.md §8.5). An own cache is read and rewritten for every KV head (§4.1), which is most of its time, so its positions
// count once per KV head; a donor's is only attended. The measured model has one KV head, E4B two, and with the factor E4B
// is priced 11 to 15 % below its measured sums instead of 24 to 28 %. Sliding layers do the same work at every context; their time is in
// the other constants.
func (q *Quantities) addAttention(op chunking.Op, m *chunking.Model) {
	layer := m.Layers[op.Layer]
	if layer.Window > 0 {
		return
	}
	positions := float64(op.MACs) / float64(2*layer.Heads*layer.HeadDim)
	if layer.OwnsKV() {
		q[AttentionOwn] += max(positions, rowsRead(op, layer.HeadDim*layer.KVHeads)) * float64(layer.KVHeads)
	} else {
		q[AttentionShared] += positions
	}
}

// rowsRead are the rows of so many numbers that the op reads, counted in fp16. Where heads of one KV head see different rows, products
// are saved and rows are not, and an own cache costs by its rows.
func rowsRead(op chunking.Op, width int) float64 {
	const kAndV, fp16 = 2, 2
	return float64(op.KVReadBytes) / float64(kAndV*fp16*width)
}

// importsFirst reports whether chunk i of the plan is the first to read what the chunk before it has just written.
func importsFirst(p *chunking.Plan, i int) bool {
	return i > 0 && p.Chunks[i].Totals.HandoffInBytes > 0 && p.Chunks[i-1].Totals.HandoffOutBytes > 0
}

// planQuantities reads every chunk of the plan.
func planQuantities(p *chunking.Plan, copyBack CopyBack) []Quantities {
	all := make([]Quantities, len(p.Chunks))
	for i, c := range p.Chunks {
		all[i] = quantitiesOf(c, p.Model, copyBack)
		if importsFirst(p, i) {
			all[i][HandoffFirst] = 1
		}
	}
	return all
}

// add sums quantities of chunks that run one after the other.
func (q *Quantities) add(o *Quantities) {
	for t := range chunkTerms {
		q[t] += o[t]
	}
}

// seconds is the predicted time of one call.
func (d *Device) seconds(q *Quantities) float64 {
	var s float64
	for t := range chunkTerms {
		s += float64(d.Constants[t].Value * q[t])
	}
	return s
}
