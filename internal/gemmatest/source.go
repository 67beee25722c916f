package gemmatest

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"anelab/gemma4"
	"anelab/internal/half"
	"anelab/quant"
)

// Config is a model of E2B's shape in miniature: 4:1 sliding and full layers, the second half sharing KV, double-wide MLP, PLE;
// sizes pairwise different, window 7.
func Config() gemma4.Config {
	types := make([]string, 10)
	for i := range types {
		types[i] = "sliding_attention"
		if i%5 == 4 {
			types[i] = "full_attention"
		}
	}
	return gemma4.Config{
		HiddenSize: 40, IntermediateSize: gemma4.IntList{52}, NumHiddenLayers: 10, LayerTypes: types,
		NumAttentionHeads: 4, NumKeyValueHeads: 1, HeadDim: 12, GlobalHeadDim: 20, NumKVSharedLayers: 5, SlidingWindow: 7,
		UseDoubleWideMLP: true, HiddenSizePerLayer: 6, VocabSize: 101, VocabSizePerLayerInput: 101, RMSNormEps: 1e-6,
		FinalLogitSoftcapping: 30, MaxPositionEmbeddings: 4096,
		RopeParameters: map[string]gemma4.RopeParameters{
			"sliding_attention": {RopeType: "default", RopeTheta: 1e4},
			"full_attention":    {RopeType: "proportional", RopeTheta: 1e6, PartialRotaryFactor: 0.25},
		},
	}
}

// Source is a checkpoint of random bf16 weights. Put replaces or adds a tensor.
type Source struct {
	tensors map[string]quant.Tensor
}

// New makes every tensor the configuration needs; the same seed and name give the same values.
func New(c gemma4.Config, seed uint64) *Source {
	layers, err := c.Layers()
	if err != nil {
		panic("gemmatest: " + err.Error())
	}
	s := &Source{tensors: map[string]quant.Tensor{}}
	m := maker{s, seed}
	d, p := c.HiddenSize, c.HiddenSizePerLayer
	m.matrix("embed_tokens.weight", c.VocabSize, d)
	m.gain("norm.weight", d)
	if p > 0 {
		m.matrix("embed_tokens_per_layer.weight", c.VocabSizePerLayerInput, p*len(layers))
		m.matrix("per_layer_model_projection.weight", p*len(layers), d)
		m.gain("per_layer_projection_norm.weight", p)
	}
	for _, l := range layers {
		m.layer(l, d, p)
	}
	return s
}

// Path names the source in errors.
func (s *Source) Path() string { return "gemmatest" }

// Has reports whether a tensor exists.
func (s *Source) Has(name string) bool {
	_, ok := s.tensors[name]
	return ok
}

// Tensor returns a tensor by name.
func (s *Source) Tensor(name string) (quant.Tensor, error) {
	t, ok := s.tensors[name]
	if !ok {
		return t, fmt.Errorf("gemmatest: no tensor %s", name)
	}
	return t, nil
}

// Put stores a bf16 tensor of shape; values are rounded.
func (s *Source) Put(name string, values []float32, shape ...int) {
	data := make([]byte, 0, 2*len(values))
	for _, v := range values {
		data = binary.LittleEndian.AppendUint16(data, half.F32ToBF16(v))
	}
	s.tensors[name] = quant.Tensor{Name: name, DType: quant.BF16, Shape: shape, Data: data}
}

// Values returns a tensor's numbers.
func (s *Source) Values(name string) []float32 {
	x, err := s.tensors[name].Floats()
	if err != nil {
		panic("gemmatest: " + err.Error())
	}
	return x
}

// maker fills a source.
type maker struct {
	s    *Source
	seed uint64
}

// random returns n values around mean with standard deviation width, from the name and the seed. Sums of small integers, so that
// every machine makes the same.
func (m maker) random(name string, n int, mean, width float64) []float32 {
	h := fnv.New64a()
	h.Write([]byte(name))
	r := rand.New(rand.NewPCG(m.seed, h.Sum64()))
	x := make([]float32, n)
	for i := range x {
		sum := 0
		for range 6 {
			sum += r.IntN(257) - 128 // variance 5504 each
		}
		x[i] = float32(mean + float64(width*float64(sum)/182))
	}
	return x
}

func (m maker) matrix(name string, rows, cols int) {
	m.s.Put(name, m.random(name, rows*cols, 0, 0.3), rows, cols)
}

func (m maker) gain(name string, n int) { m.s.Put(name, m.random(name, n, 1, 0.2), n) }

func (m maker) layer(l gemma4.Layer, d, p int) {
	at := fmt.Sprintf("layers.%d.", l.Index)
	for _, norm := range []string{"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"} {
		m.gain(at+norm+".weight", d)
	}
	m.gain(at+"layer_scalar", 1)
	q := l.Heads * l.HeadDim
	m.matrix(at+"self_attn.q_proj.weight", q, d)
	m.matrix(at+"self_attn.o_proj.weight", d, q)
	m.gain(at+"self_attn.q_norm.weight", l.HeadDim)
	if l.OwnsKV() {
		m.matrix(at+"self_attn.k_proj.weight", l.KVWidth(), d)
		m.gain(at+"self_attn.k_norm.weight", l.HeadDim)
		if !l.KEqV {
			m.matrix(at+"self_attn.v_proj.weight", l.KVWidth(), d)
		}
	}
	m.matrix(at+"mlp.gate_proj.weight", l.FFN, d)
	m.matrix(at+"mlp.up_proj.weight", l.FFN, d)
	m.matrix(at+"mlp.down_proj.weight", d, l.FFN)
	if p > 0 {
		m.matrix(at+"per_layer_input_gate.weight", p, d)
		m.matrix(at+"per_layer_projection.weight", d, p)
		m.gain(at+"post_per_layer_input_norm.weight", d)
	}
}
