package place

import (
	"anelab/chunking"
	"anelab/gemma4"
)

// known replaces the model that was read by the one that a configuration of the family would give, if that is the same layer by
// layer: then plans know the donors of shared keys by their layers. Other models stay as they were read.
func (r *Reading) known() {
	read := r.Plan.Model
	m, err := chunking.NewModel(configOf(r.Plan))
	if err != nil {
		return
	}
	for i, l := range m.Layers {
		x := read.Layers[i]
		if l.Kind != x.Kind || l.Heads != x.Heads || l.KVHeads != x.KVHeads || l.HeadDim != x.HeadDim || l.OwnsKV() != x.OwnsKV() {
			return
		}
	}
	r.Plan.Model = m
}

// configOf is a configuration that says what the plan shows. What no program shows has the values of the family.
func configOf(p *chunking.Plan) gemma4.Config {
	layers := p.Model.Layers
	c := gemma4.Config{HiddenSize: p.Model.Config.HiddenSize, NumHiddenLayers: len(layers), SlidingWindow: 1, HeadDim: 2, NumAttentionHeads: 1, NumKeyValueHeads: 1, VocabSize: 1,
		RMSNormEps: 1e-6, IntermediateSize: make(gemma4.IntList, len(layers)), PerLayerConfig: map[string]gemma4.LayerOverrides{},
		RopeParameters: map[string]gemma4.RopeParameters{
			"sliding_attention": {RopeType: "default", RopeTheta: 1e4},
			"full_attention":    {RopeType: "proportional", RopeTheta: 1e6, PartialRotaryFactor: 0.25},
		}}
	for i, l := range layers {
		c.IntermediateSize[i] = 1
		kind := "full_attention"
		if c.NumAttentionHeads = l.Heads; l.Kind == gemma4.Sliding {
			kind, c.SlidingWindow, c.HeadDim, c.NumKeyValueHeads = "sliding_attention", l.Window, l.HeadDim, l.KVHeads
		} else if c.GlobalHeadDim = l.HeadDim; c.HeadDim == 2 {
			c.HeadDim, c.NumKeyValueHeads = l.HeadDim, l.KVHeads
		}
		c.LayerTypes = append(c.LayerTypes, kind)
		if !l.OwnsKV() {
			c.NumKVSharedLayers++
		}
	}
	for _, chunk := range p.Chunks {
		for _, op := range chunk.Ops {
			switch {
			case op.Kind == chunking.OpGate && op.Layer >= 0:
				c.IntermediateSize[op.Layer] = op.Rows
			case op.Kind == chunking.OpPLEGate:
				c.HiddenSizePerLayer, c.VocabSizePerLayerInput = op.Rows, 1
			case chunk.Head && op.Rows > c.VocabSize:
				c.VocabSize = op.Rows
			}
		}
	}
	return c
}
