package gemma4

import (
	"fmt"
	"sort"
	"strconv"

	"anelab/internal/format"
)

// Kind is the attention type of a layer.
type Kind uint8

// Sliding layers see a window, full layers everything before them.
const (
	Sliding Kind = iota
	Full
)

var kindNames = [...]string{"sliding", "full"}

func (k Kind) String() string { return kindNames[k] }

// Layer is every fact about one decoder layer, resolved once.
type Layer struct {
	Index    int
	Kind     Kind
	Heads    int // H, query heads
	KVHeads  int // K
	HeadDim  int // d
	FFN      int // F
	Window   int // W, itself included; 0 for full layers
	KVSource int // layer whose keys and values it reads; Index for owners
	Rope     Rope
	KEqV     bool // V is the gain-free norm of the raw key projection; there is no v_proj
}

// Rope says which dimensions of a head rotate and how fast: pair i is (i, i+d/2), with frequency Theta^(−2i/d) for
// i < Pairs and 0 (identity) above (spec forward.md §2.6).
type Rope struct {
	Theta float64
	Pairs int
}

// OwnsKV reports whether the layer computes and stores its own keys and values.
func (l Layer) OwnsKV() bool { return l.KVSource == l.Index }

// KVWidth is the number of values in one key row (and in one value row): K·d.
func (l Layer) KVWidth() int { return l.KVHeads * l.HeadDim }

// limits of what a config may ask for: far above any model, low enough that sizes cannot overflow.
const (
	maxLayers = 1 << 12
	maxDim    = 1 << 24
)

// Layers resolves the per-layer list. The error names the config field at fault.
func (c Config) Layers() ([]Layer, error) {
	if err := c.checkSizes(); err != nil {
		return nil, err
	}
	overrides, err := c.overrides()
	if err != nil {
		return nil, err
	}
	layers := make([]Layer, c.NumHiddenLayers)
	for i := range layers {
		if layers[i], err = c.layer(i, overrides[i]); err != nil {
			return nil, err
		}
	}
	if err := checkKinds(layers); err != nil {
		return nil, err
	}
	return layers, c.resolveSources(layers)
}

// checkKinds makes sure that layers of one kind share one RoPE table and one cache width.
func checkKinds(layers []Layer) error {
	seen := map[Kind]Layer{}
	for _, l := range layers {
		first, ok := seen[l.Kind]
		if !ok {
			seen[l.Kind] = l
		} else if l.HeadDim != first.HeadDim || l.KVHeads != first.KVHeads {
			return &format.Error{Field: "per_layer_config", Got: fmt.Sprintf("layer %d: %d kv heads of width %d", l.Index, l.KVHeads, l.HeadDim),
				Want: fmt.Sprintf("%d of width %d as the other %s layers", first.KVHeads, first.HeadDim, l.Kind)}
		}
	}
	return nil
}

func (c Config) checkSizes() error {
	for _, f := range []struct {
		name     string
		v, least int
		most     int
	}{
		{"num_hidden_layers", c.NumHiddenLayers, 1, maxLayers},
		{"hidden_size", c.HiddenSize, 1, maxDim},
		{"num_attention_heads", c.NumAttentionHeads, 1, maxLayers},
		{"num_key_value_heads", c.NumKeyValueHeads, 1, maxLayers},
		{"num_global_key_value_heads", c.NumGlobalKVHeads, 0, maxLayers},
		{"head_dim", c.HeadDim, 2, maxLayers},
		{"global_head_dim", c.GlobalHeadDim, 0, maxLayers},
		{"sliding_window", c.SlidingWindow, 1, maxDim},
		{"vocab_size", c.VocabSize, 1, maxDim},
		{"hidden_size_per_layer_input", c.HiddenSizePerLayer, 0, maxDim},
		{"num_kv_shared_layers", c.NumKVSharedLayers, 0, c.NumHiddenLayers - 1},
	} {
		if f.v < f.least || f.v > f.most {
			return &format.Error{Field: f.name, Got: strconv.Itoa(f.v), Want: fmt.Sprintf("%d to %d", f.least, f.most)}
		}
	}
	if len(c.LayerTypes) != c.NumHiddenLayers {
		return &format.Error{Field: "layer_types", Got: fmt.Sprintf("%d entries", len(c.LayerTypes)), Want: fmt.Sprintf("%d", c.NumHiddenLayers)}
	}
	if c.HiddenSizePerLayer > 0 && c.VocabSizePerLayerInput < 1 {
		return &format.Error{Field: "vocab_size_per_layer_input", Got: strconv.Itoa(c.VocabSizePerLayerInput), Want: "the rows of the per-layer table"}
	}
	if !(c.RMSNormEps > 0 && c.RMSNormEps < 1) {
		return &format.Error{Field: "rms_norm_eps", Got: fmt.Sprint(c.RMSNormEps), Want: "a small positive number"}
	}
	if !(c.FinalLogitSoftcapping >= 0 && c.FinalLogitSoftcapping < 1e6) {
		return &format.Error{Field: "final_logit_softcapping", Got: fmt.Sprint(c.FinalLogitSoftcapping), Want: "a positive number or null"}
	}
	return nil
}

// overrides parses per_layer_config. Keys are layer numbers, zero-padded or not ("05" in a 12-layer model).
func (c Config) overrides() (map[int]LayerOverrides, error) {
	byLayer := make(map[int]LayerOverrides, len(c.PerLayerConfig))
	keys := make([]string, 0, len(c.PerLayerConfig))
	for key := range c.PerLayerConfig {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		i, err := strconv.Atoi(key)
		if err != nil || i < 0 || i >= c.NumHiddenLayers {
			return nil, &format.Error{Field: "per_layer_config", Got: "key " + strconv.Quote(key), Want: fmt.Sprintf("a layer, 0 to %d", c.NumHiddenLayers-1)}
		}
		if _, twice := byLayer[i]; twice {
			return nil, &format.Error{Field: "per_layer_config", Got: fmt.Sprintf("layer %d twice", i), Want: "one entry per layer"}
		}
		o := c.PerLayerConfig[key]
		if o.HeadDim < 0 || o.HeadDim > maxLayers || o.NumKeyValueHeads < 0 || o.NumKeyValueHeads > maxLayers {
			return nil, &format.Error{Field: "per_layer_config." + key, Got: fmt.Sprintf("%+v", o), Want: "positive sizes"}
		}
		byLayer[i] = o
	}
	return byLayer, nil
}

// kind of layer i. transformers forces the last layer to full attention, whatever layer_types says (spec forward.md §2.11).
func (c Config) kind(i int) (Kind, error) {
	switch t := c.LayerTypes[i]; {
	case i == c.NumHiddenLayers-1 && (t == "sliding_attention" || t == "full_attention"), t == "full_attention":
		return Full, nil
	case t == "sliding_attention":
		return Sliding, nil
	default:
		return 0, &format.Error{Field: fmt.Sprintf("layer_types[%d]", i), Got: strconv.Quote(t), Want: `"sliding_attention" or "full_attention"`}
	}
}

// layer resolves everything but KVSource.
func (c Config) layer(i int, o LayerOverrides) (Layer, error) {
	kind, err := c.kind(i)
	if err != nil {
		return Layer{}, err
	}
	l := Layer{Index: i, Kind: kind, Heads: c.NumAttentionHeads, KVHeads: c.NumKeyValueHeads, HeadDim: c.HeadDim, Window: c.SlidingWindow}
	if kind == Full {
		l.Window, l.KEqV = 0, c.AttentionKEqV
		l.HeadDim = firstSet(c.GlobalHeadDim, c.HeadDim)
		if c.AttentionKEqV {
			l.KVHeads = firstSet(c.NumGlobalKVHeads, c.NumKeyValueHeads)
		}
	}
	l.HeadDim, l.KVHeads = firstSet(o.HeadDim, l.HeadDim), firstSet(o.NumKeyValueHeads, l.KVHeads)
	if l.Heads%l.KVHeads != 0 || l.HeadDim%2 != 0 {
		return Layer{}, &format.Error{Field: fmt.Sprintf("layer %d", i), Got: fmt.Sprintf("%d query heads of width %d over %d kv heads", l.Heads, l.HeadDim, l.KVHeads),
			Want: "an even width and a whole number of query heads per kv head"}
	}
	if l.FFN, err = c.ffn(i); err != nil {
		return Layer{}, err
	}
	l.Rope, err = c.rope(kind, l.HeadDim)
	return l, err
}

// ffn is the FFN width of layer i: doubled on KV-shared layers of a double-wide model.
func (c Config) ffn(i int) (int, error) {
	list := c.IntermediateSize
	f := 0
	switch {
	case len(list) == 1:
		f = list[0]
	case len(list) == c.NumHiddenLayers:
		f = list[i]
	default:
		return 0, &format.Error{Field: "intermediate_size", Got: fmt.Sprintf("%d widths", len(list)), Want: fmt.Sprintf("one, or one for each of %d layers", c.NumHiddenLayers)}
	}
	if f < 1 || f > maxDim {
		return 0, &format.Error{Field: "intermediate_size", Got: strconv.Itoa(f), Want: fmt.Sprintf("1 to %d", maxDim)}
	}
	if !c.UseDoubleWideMLP {
		return f, nil
	}
	for _, w := range list {
		if w != list[0] {
			return 0, &format.Error{Field: "intermediate_size", Got: "different widths together with use_double_wide_mlp", Want: "one or the other"}
		}
	}
	if i >= c.NumHiddenLayers-c.NumKVSharedLayers {
		f *= 2
	}
	return f, nil
}

// rope resolves the rotary parameters of a layer type. An unknown rope_type is an error: falling back to a full rotation
// corrupts keys without crashing.
func (c Config) rope(kind Kind, d int) (Rope, error) {
	name := kind.String() + "_attention"
	p, ok := c.RopeParameters[name]
	field := "rope_parameters." + name
	if !ok {
		return Rope{}, &format.Error{Field: field, Got: "nothing", Want: "rope_type and rope_theta"}
	}
	if !(p.RopeTheta > 1 && p.RopeTheta < 1e12) {
		return Rope{}, &format.Error{Field: field + ".rope_theta", Got: fmt.Sprint(p.RopeTheta), Want: "a number above 1"}
	}
	switch f := p.PartialRotaryFactor; p.RopeType {
	case "default":
		if f != 0 && f != 1 {
			return Rope{}, &format.Error{Field: field + ".partial_rotary_factor", Got: fmt.Sprint(f), Want: `nothing, or rope_type "proportional"`}
		}
		return Rope{Theta: p.RopeTheta, Pairs: d / 2}, nil
	case "proportional":
		if !(f > 0 && f <= 1) {
			return Rope{}, &format.Error{Field: field + ".partial_rotary_factor", Got: fmt.Sprint(f), Want: "more than 0, at most 1"}
		}
		return Rope{Theta: p.RopeTheta, Pairs: int(f*float64(d)) / 2}, nil
	default:
		return Rope{}, &format.Error{Field: field + ".rope_type", Got: strconv.Quote(p.RopeType), Want: `"default" or "proportional"`}
	}
}

// resolveSources points every shared layer at the last owner of its kind (spec forward.md §2.8).
func (c Config) resolveSources(layers []Layer) error {
	firstShared := len(layers) - c.NumKVSharedLayers
	last := map[Kind]int{}
	for i := range layers {
		l := &layers[i]
		l.KVSource = i
		if i < firstShared {
			last[l.Kind] = i
			continue
		}
		src, ok := last[l.Kind]
		if !ok {
			return &format.Error{Field: "num_kv_shared_layers", Got: fmt.Sprintf("layer %d is %s and shared", i, l.Kind),
				Want: fmt.Sprintf("a %s layer among the first %d to share with", l.Kind, firstShared)}
		}
		l.KVSource = src
	}
	return nil
}

// firstSet is the first of its arguments that is not zero.
func firstSet(a, b int) int {
	if a != 0 {
		return a
	}
	return b
}
