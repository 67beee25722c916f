package chunking

import (
	"anelab/gemma4"
	"anelab/quant"
)

// Layout is what a person asks for. The zero values mean: int4g32 weights, explicit KV I/O, one query token.
type Layout struct {
	Cuts        []Cut       // in layer order, covering every layer once
	Context     int         // C, compiled into the chunks; 0 = 2048
	QueryTokens int         // T per call; 0 = 1 (decode)
	KVMode      KVMode      //
	Attn        []LayerAttn // per-layer attention policies that differ from the model's own
}

// Cut is one chunk as asked for.
type Cut struct {
	Lo, Hi  int            // layers [Lo, Hi); Lo == Hi for a chunk that is only the head
	Head    bool           // final norm, LM head, soft-cap and argmax belong to it
	Weights quant.Encoding // of its linears; zero = int4g32
}

// KVMode says how keys and values reach a chunk.
type KVMode uint8

// Only explicit I/O is planned so far: caches are inputs and outputs of every call (spec forward.md §4.1).
const (
	ExplicitIO KVMode = iota
)

// LayerAttn replaces the attention policy of one layer, or of all full layers (Layer −1), by its text form (spec design.md D3).
type LayerAttn struct {
	Layer  int
	Policy string
}

// Plan is everything derived from a layout for one model.
type Plan struct {
	Layout  Layout
	Model   *Model
	Context int // C
	Chunks  []*Chunk
}

// Model is the resolved configuration that plans are made for.
type Model struct {
	Config gemma4.Config
	Layers []gemma4.Layer
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

// Port is one input or output tensor of a chunk.
type Port struct {
	Name   string
	Shape  []int
	Type   PortType
	Role   Role
	Layers []int // KV ports: the layer behind each slot
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

// Ports of spec forward.md §4.0–4.5.
const (
	RoleHidden  Role = iota // hidden_states, hidden_states_out
	RoleMask                // causal_mask_full, causal_mask_sliding
	RoleUpdate              // update_mask
	RolePLE                 // per_layer_raw, per_layer_combined, per_layer_combined_out
	RoleRope                // cos_s, sin_s, cos_f, sin_f
	RoleCache               // K/V_sliding_in/out, K/V_full_in/out: the chunk's own KV
	RoleHandoff             // kv13_k, kv13_v, kv14_k, kv14_v: a donor's KV for later chunks
	RoleToken               // token_id, token_logit
)

// OpKind names an op of the plan.
type OpKind string

// Ops of one layer in order, then those of the first and the last chunk.
const (
	OpNorm      OpKind = "norm" // all gains of a layer, and its scalar
	OpQ         OpKind = "q_proj"
	OpK         OpKind = "k_proj"
	OpV         OpKind = "v_proj"
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

// Bytes is the size of the port in a Core ML call.
func (p Port) Bytes() int64 {
	n := int64(2)
	if p.Type == Int32 {
		n = 4
	}
	for _, d := range p.Shape {
		n *= int64(d)
	}
	return n
}
