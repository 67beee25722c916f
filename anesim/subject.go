package anesim

import "anelab/chunking"

// Subject is one program and the way it is loaded, as far as limits ask. A chunk of a plan fills the first group; the rest
// is what graphs from elsewhere, or plans not yet built, may have. The zero value of a field means "no" or "not known", and
// no limit fires on what is not known.
type Subject struct {
	Class       Class
	Layers      int
	Head        bool
	WeightBytes float64
	Bits        int // of the linears
	QueryTokens int
	LongestRow  int // longest dimension of an input: masks and caches are as long as the context
	HeadRows    int // height of the LM head, 0 without one

	StateTypes     int  // 0 = caches are inputs and outputs
	ConvState      bool // one of the states belongs to a convolution
	StateOutputs   bool // slices of a state are outputs too
	ShiftWrite     bool // the state is rewritten as cat([K[1:], k])
	ScatterWrite   bool // keys and values are written by a one-hot product
	TiedEmbedding  bool
	OldStateTools  bool // converted before coremltools 9
	Functions      int  // of the package
	LatePalette    bool // palettised after the functions were merged
	ActivationBits int  // of quantised activations; 0 = fp16
	LinearWeights  bool // one scale per channel instead of a palette
	BlockLUT       bool // a palette per (row, block), or one with a blockwise scale
	ChannelScale   bool // enable_per_channel_scale on a palette
	Ops            []OpTrait
	WeightInputs   float64 // bytes of weights that come in as inputs
	TopKOver       int     // rows that a topk behind a soft-cap looks at
	FlexibleShapes bool    // RangeDim

	Queues             int  // programs issued at once to the same engine
	ResidentPrograms   int  // of the whole bundle
	BackedInput        bool // an IOSurface array is an input first and an output backing later
	InfrequentReshapes bool // reshapeFrequency = .infrequent with a prefix cache
}

// OpTrait is a property of some op in a program that moves it, or the whole program, off the Neural Engine.
type OpTrait string

// Traits that limits.csv has observations of.
const (
	OpDepthwise    OpTrait = "depthwise convolution"
	OpCumsum       OpTrait = "cumsum"
	OpArgmax       OpTrait = "argmax"
	OpFloat32Cast  OpTrait = "fp32 cast"
	OpMatmul5D     OpTrait = "5-D matmul"
	OpInt32        OpTrait = "int32 tensor"
	OpTiledMLP     OpTrait = "MLP tiled as (B, C, 8, 8)"
	OpExpertGather OpTrait = "gather with runtime indices"
	OpExp2Softmax  OpTrait = "softmax by exp2"
)

// SubjectOf is chunk i of a plan on a device, with the explicit KV I/O that plans have.
func SubjectOf(p *chunking.Plan, i int, class Class) Subject {
	c := p.Chunks[i]
	s := Subject{Class: class, Layers: c.Totals.Layers, Head: c.Head, WeightBytes: float64(c.Totals.WeightBytes), Bits: c.Weights.Bits,
		QueryTokens: max(1, p.Layout.QueryTokens), Functions: 1}
	for _, port := range c.Inputs {
		for _, d := range port.Shape {
			s.LongestRow = max(s.LongestRow, d)
		}
	}
	for _, op := range c.Ops {
		if op.Kind == chunking.OpHead {
			s.HeadRows = op.Rows
		}
	}
	return s
}

// Any of the traits is enough.
func (s *Subject) has(traits ...OpTrait) bool {
	for _, have := range s.Ops {
		for _, t := range traits {
			if have == t {
				return true
			}
		}
	}
	return false
}
