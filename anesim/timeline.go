package anesim

import (
	"fmt"

	"anelab/chunking"
)

// Track is one lane of a timeline.
type Track uint8

// The host calls; the engine runs one task after another; weights and activations reach it on two paths of their own
// (spec ane.md §0.1).
const (
	TrackHost Track = iota
	TrackTask
	TrackWeights
	TrackActivations
	NumTracks
)

var trackNames = [NumTracks]string{"host", "ANE task", "weight stream", "activation stream"}

// String is the name of the lane.
func (t Track) String() string { return trackNames[t] }

// Span is a stretch of one lane, in nanoseconds from the start of the token. Spans of a lane nest or do not touch.
type Span struct {
	Track      Track
	Name       string
	Start, End int64
	Bytes      int64 // moved in it, 0 where that is not what it does
	Chunk      int   // −1 outside the calls
}

// Counter is the value of a counter from a moment on.
type Counter struct {
	Name  string
	At    int64 // ns
	Value float64
}

// Timeline is one decode step laid out in time. Terms that belong to single ops stand at their ops, in the order of the
// graph; the rest of a call stands before and after. It is a picture of a sum: the model says how long everything takes
// together, and assumes that nothing overlaps.
type Timeline struct {
	Spans    []Span
	Counters []Counter
	Total    int64 // ns
}

// beforeTask is the share of the dispatch time that passes before the engine starts: 30 µs of 350 (spec ane.md A1).
const beforeTask = 30.0 / 350

// TimelineOf lays out one decode step of a plan.
func TimelineOf(p *chunking.Plan, d Device, w Workload) Timeline {
	b := &builder{plan: p, device: &d, chunk: -1}
	token := b.open(TrackHost, "token")
	host := b.open(TrackHost, "embedding, masks, sampling")
	b.advance(d.hostSeconds(p.Context))
	b.close(host)
	for i, q := range planQuantities(p, w.copyBack()) {
		b.call(i, q)
	}
	b.close(token)
	b.out.Total = b.now()
	return b.out
}

// builder places spans one after the other. Time is kept in seconds and rounded only at the borders of spans, which are
// shared, so that nesting survives the rounding.
type builder struct {
	plan   *chunking.Plan
	device *Device
	out    Timeline
	clock  float64 // s
	chunk  int
	kv     int64 // bytes of caches read so far
	weight int64
}

// now rounds to whole nanoseconds. The conversions keep products apart from sums, so that every machine prints the same trace.
func (b *builder) now() int64 { return int64(float64(b.clock*1e9) + 0.5) }

func (b *builder) advance(seconds float64) { b.clock += seconds }

// Spans are filed when they open, so parents come before their children.
func (b *builder) open(t Track, name string) int {
	b.out.Spans = append(b.out.Spans, Span{Track: t, Name: name, Start: b.now(), Chunk: b.chunk})
	return len(b.out.Spans) - 1
}

func (b *builder) close(i int) { b.out.Spans[i].End = b.now() }

// term places a stretch of engine time on the task lane and on one of the streams.
func (b *builder) term(t Track, name string, seconds float64, bytes int64) {
	if seconds <= 0 {
		return
	}
	task, stream := b.open(TrackTask, name), b.open(t, name)
	b.advance(seconds)
	b.close(task)
	b.close(stream)
	b.out.Spans[stream].Bytes = bytes
}

// call is one program: dispatch, the task, and what the host does before the call returns.
func (b *builder) call(i int, q Quantities) {
	c, k := b.plan.Chunks[i], &b.device.Constants
	b.chunk = i
	call := b.open(TrackHost, "call "+c.String())
	before := b.open(TrackHost, "before the task")
	b.advance(beforeTask * k[Dispatch].Value)
	b.close(before)
	task := b.open(TrackTask, c.String())
	b.term(TrackActivations, "import KV", importSeconds(b.device, &q), c.Totals.HandoffInBytes)
	b.ops(c)
	b.close(task)
	after := b.open(TrackHost, "after the task")
	b.advance((1 - beforeTask) * k[Dispatch].Value)
	b.close(after)
	if q[CopyBackBytes] > 0 {
		b.copyBack(k[CopyBackBytes].Value * q[CopyBackBytes])
	}
	b.close(call)
	b.chunk = -1
	b.count()
}

// importSeconds is all that the hand-off of keys and values costs a call.
func importSeconds(d *Device, q *Quantities) float64 {
	var s float64
	for _, t := range []Term{HandoffBytes, HandoffCall, HandoffFirst} {
		s += float64(d.Constants[t].Value * q[t])
	}
	return s
}

// The host copies while the call is open: its timer includes it (data README §3).
func (b *builder) copyBack(seconds float64) {
	i := b.open(TrackHost, "copy caches back")
	b.advance(seconds)
	b.close(i)
	b.out.Spans[i].Bytes = b.plan.Chunks[b.chunk].Totals.CacheInBytes
}

// ops places every op of a chunk that takes time, layer by layer.
func (b *builder) ops(c *chunking.Chunk) {
	layer, open := noLayer, -1
	for _, op := range c.Ops {
		if op.Layer != layer {
			if open >= 0 {
				b.close(open)
			}
			layer, open = op.Layer, -1
			if layer >= 0 {
				open = b.open(TrackTask, fmt.Sprintf("layer %d", layer))
			}
		}
		b.op(op)
	}
	if open >= 0 {
		b.close(open)
	}
}

const noLayer = -2

// Norms and projections stream weights; attention reads caches and activations, and has no weights.
func (b *builder) op(op chunking.Op) {
	k := &b.device.Constants
	name := string(op.Kind)
	switch op.Kind {
	case chunking.OpAttention:
		var q Quantities
		q.addAttention(op, b.plan.Model)
		b.term(TrackActivations, name, float64(k[AttentionOwn].Value*q[AttentionOwn])+float64(k[AttentionShared].Value*q[AttentionShared]), op.KVReadBytes)
		b.kv += op.KVReadBytes
		return
	case chunking.OpPLEModel:
		b.term(TrackActivations, "per-layer inputs", k[PLEProjection].Value, 0)
	}
	b.term(TrackWeights, name, k[WeightStream].Value*float64(op.WeightBytes), op.WeightBytes)
	b.weight += op.WeightBytes
}

// count samples the counters behind a call.
func (b *builder) count() {
	at := b.now()
	b.out.Counters = append(b.out.Counters, Counter{"weights streamed, MB", at, float64(b.weight) / 1e6}, Counter{"KV read, MB", at, float64(b.kv) / 1e6})
}
