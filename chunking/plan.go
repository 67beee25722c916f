package chunking

import (
	"fmt"
	"strings"

	"anelab/gemma4"
	"anelab/quant"
)

// Plan is everything derived from a layout for one model.
type Plan struct {
	Layout  Layout
	Model   *Model
	Context int    // C
	Banks   []Bank // [L] behind the keys of every layer
	Chunks  []*Chunk
}

// Chunk is one program: immutable, shared between plans.
type Chunk struct {
	Lo, Hi  int
	Head    bool
	Weights quant.Encoding
	Inputs  []Port
	Outputs []Port
	Ops     []Op
	Totals  Totals
}

// String is the chunk as layout text writes it: "L8-24", "L25-34+head", "head".
func (c *Chunk) String() string { return Cut{Lo: c.Lo, Hi: c.Hi, Head: c.Head}.String() }

// Port is one input or output tensor of a chunk.
type Port struct {
	Name   string
	Shape  []int
	Type   PortType
	Role   Role
	Layers []int // KV ports: the layer behind each slot
	Stored int64 // bytes of a cache whose rows are kept in a form of fewer bits; 0 = as the shape says
}

// PortType is the element type of a port as Core ML declares it.
type PortType uint8

// Every port is fp16 but token_id.
const (
	Float16 PortType = iota
	Int32
)

// Role groups ports by what they cost and by who fills them.
type Role uint8

// Ports of spec forward.md §4.0–4.5 and §4.10.
const (
	RoleHidden  Role = iota // hidden_states, hidden_states_out
	RoleMask                // causal_mask_full, causal_mask_sliding
	RoleUpdate              // update_mask, update_indicator
	RolePLE                 // per_layer_raw, per_layer_combined, per_layer_combined_out
	RoleRope                // cos_s, sin_s, cos_f, sin_f
	RoleCache               // K/V_sliding_in/out, K/V_full_in/out, new_K/V_*: the chunk's own KV
	RoleHandoff             // kv13_k, kv13_v, kv14_k, kv14_v: a donor's KV for later chunks
	RoleToken               // token_id, token_logit, token_ids
)

// Bytes is the size of the port in a Core ML call.
func (p Port) Bytes() int64 {
	if p.Stored > 0 {
		return p.Stored
	}
	n := int64(2)
	if p.Type == Int32 {
		n = 4
	}
	for _, d := range p.Shape {
		n *= int64(d)
	}
	return n
}

// OpKind names an op of the plan.
type OpKind string

// Ops of one layer in order, then those of the first and the last chunk.
const (
	OpNorm      OpKind = "norm" // all gains of a layer, and its scalar
	OpQ         OpKind = "q_proj"
	OpK         OpKind = "k_proj"
	OpV         OpKind = "v_proj"
	OpRebuild   OpKind = "rebuild"   // rows from their coordinates, where they are stored so
	OpAttention OpKind = "attention" // QKᵀ and PV
	OpO         OpKind = "o_proj"
	OpGate      OpKind = "gate_proj"
	OpUp        OpKind = "up_proj"
	OpDown      OpKind = "down_proj"
	OpPLEGate   OpKind = "per_layer_input_gate"
	OpPLEProj   OpKind = "per_layer_projection"
	OpPLEModel  OpKind = "per_layer_model_projection" // chunk 1 only
	OpHead      OpKind = "lm_head"                    // last chunk only
)

// Op is one unit of work.
type Op struct {
	Kind        OpKind
	Layer       int            // −1 for ops outside the layers
	Rows, Cols  int            // of its weight; 0 without one
	Encoding    quant.Encoding // of its weight
	WeightBytes int64
	MACs        int64 // for T query tokens; a static graph computes over all C (or W) positions
	KVReadBytes int64 // attention: fp16 keys and values read, natural width (d values, not the 512-wide padding)
}

// Totals are sums over a chunk, computed once; every count is for one call.
type Totals struct {
	Layers          int
	FullOwn         int   // full-attention layers that own their KV
	FullShared      int   // full-attention layers that read a donor's
	SlidingOwn      int   //
	SlidingShared   int   //
	LinearParams    int64 // weights of the linears
	LinearBytes     int64 // as encoded
	WeightBytes     int64 // LinearBytes + fp16 gains and scalars
	MACs            int64
	KVReadBytes     int64 // natural width
	CacheBytes      int64 // K/V_* caches in plus out, as stored (512-wide)
	CacheInBytes    int64 // inputs alone: what copy-back writes each step
	HandoffInBytes  int64 // kv13/kv14 inputs
	HandoffOutBytes int64 // kv13/kv14 outputs
	InputBytes      int64 // all inputs
	OutputBytes     int64 // all outputs
	PLEModel        bool  // carries per_layer_model_projection
}

// Totals sums the chunks: what one call of each of them, one after the other, moves and computes.
func (p *Plan) Totals() Totals {
	var t Totals
	for _, c := range p.Chunks {
		t.add(&c.Totals)
	}
	return t
}

func (t *Totals) add(o *Totals) {
	t.Layers += o.Layers
	t.FullOwn += o.FullOwn
	t.FullShared += o.FullShared
	t.SlidingOwn += o.SlidingOwn
	t.SlidingShared += o.SlidingShared
	t.LinearParams += o.LinearParams
	t.LinearBytes += o.LinearBytes
	t.WeightBytes += o.WeightBytes
	t.MACs += o.MACs
	t.KVReadBytes += o.KVReadBytes
	t.CacheBytes += o.CacheBytes
	t.CacheInBytes += o.CacheInBytes
	t.HandoffInBytes += o.HandoffInBytes
	t.HandoffOutBytes += o.HandoffOutBytes
	t.InputBytes += o.InputBytes
	t.OutputBytes += o.OutputBytes
	t.PLEModel = t.PLEModel || o.PLEModel
}

// Handoff is one donor's keys and values leaving the chunk that owns them.
type Handoff struct {
	Layer int         // the donor
	Kind  gemma4.Kind // sliding travels as kv13_*, full as kv14_*, on every model
	From  int         // chunk that owns the donor
	To    []int       // chunks that read it, ascending
	Bytes int64       // K and V, once
}

// Crosses reports whether the hand-off passes the cut between chunk i and chunk i+1.
func (h Handoff) Crosses(i int) bool { return h.From <= i && i < h.To[len(h.To)-1] }

// String counts chunks from 1, as messages do.
func (h Handoff) String() string {
	s := fmt.Sprintf("layer %d (%s) from chunk %d to", h.Layer, h.Kind, h.From+1)
	for _, to := range h.To {
		s += fmt.Sprintf(" %d", to+1)
	}
	return s
}

// Handoffs lists the KV donors that cross a cut, sliding before full.
func (p *Plan) Handoffs() []Handoff {
	var all []Handoff
	for _, kind := range []gemma4.Kind{gemma4.Sliding, gemma4.Full} {
		h := Handoff{Layer: p.Model.kinds[kind].donor, Kind: kind}
		for i, c := range p.Chunks {
			if bytes := handoffBytes(c.Outputs, kind); bytes > 0 {
				h.From, h.Bytes = i, bytes
			}
			if handoffBytes(c.Inputs, kind) > 0 {
				h.To = append(h.To, i)
			}
		}
		if len(h.To) > 0 {
			all = append(all, h)
		}
	}
	return all
}

// handoffBytes goes by names, which ports that were read from a package have too.
func handoffBytes(ports []Port, kind gemma4.Kind) int64 {
	var n int64
	for _, p := range ports {
		if p.Role == RoleHandoff && strings.HasPrefix(p.Name, donorNames[kind]) {
			n += p.Bytes()
		}
	}
	return n
}
