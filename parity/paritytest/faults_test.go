package paritytest

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/attention"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/checkpoint"
	"anelab/parity"
	"anelab/parity/golden"
	"anelab/quant"
	"anelab/swa"
)

// plant is one mistake, put into a model that is otherwise right.
type plant struct {
	arithmetic func(arith.Arithmetic) arith.Arithmetic
	source     func(gemma4.Source) gemma4.Source
	config     func(*gemma4.Config)
	policies   map[int]attention.Policy
	model      func(*gemma4.Model)
	first      string // the tensor at which the comparison must part
	caseName   string // the shortest case that can show it; "T1" when empty
}

// TestPlantedFaultsAreSeen is the check on the checks: each mistake of the public cases, planted, must be seen in the float32
// goldens with the tolerances that the right model passes, and at the tensor where it was made.
func TestPlantedFaultsAreSeen(t *testing.T) { // hand
	window := published(t).SlidingWindow
	slidingPolicies := func(w int) map[int]attention.Policy {
		p := map[int]attention.Policy{}
		for _, l := range []int{0, 1, 2, 3, 5, 6, 7, 8} {
			p[l] = attention.Sliding{Window: w}
		}
		return p
	}
	for name, p := range map[string]plant{
		"PAR-07 layer 7 skipped":                 {source: skipLayer(7), first: "hidden.7"},
		"PAR-07 embeddings off by 39.1875/39.25": {arithmetic: scaleEmbeddings(39.1875 / 39.25), first: "embeds"},
		"FWD-01 attention scaled by 1/sqrt(d)":   {arithmetic: wrap(func(a *faulty) { a.scores = 0.25 }), first: "probs.0", caseName: "T7"},
		"FWD-02 per-layer table not scaled":      {arithmetic: wrap(func(a *faulty) { a.pleScale = math.Sqrt(12) }), first: "per_layer_inputs"},
		"FWD-04 norm weights plus one":           {arithmetic: wrap(func(a *faulty) { a.plusOne = true }), first: "per_layer_inputs"},
		"FWD-12 erf GELU":                        {arithmetic: wrap(func(a *faulty) { a.erf = true }), first: "hidden.0"},
		"ROPE-03 full rotary on full layers":     {config: fullRotary, first: "q.4", caseName: "T7"},
		"ROPE-04 one theta":                      {config: oneTheta, first: "q.4", caseName: "T7"},
		"SWA-01 window one too wide":             {policies: slidingPolicies(window + 1), first: "probs.0", caseName: "T8"},
		"PAR-04 window one too narrow":           {policies: slidingPolicies(window - 1), first: "probs.0", caseName: "T7"},
		"KVS-01 wrong donor, sliding":            {model: donor(5, 2), first: "k.5"},
		"wrong donor, last layer":                {model: donor(8, 1), first: "k.8"},
		"eps 1e-5":                               {config: func(c *gemma4.Config) { c.RMSNormEps = 1e-5 }, first: "per_layer_inputs"},
		"no soft-cap":                            {config: func(c *gemma4.Config) { c.FinalLogitSoftcapping = 0 }, first: "logits"},
	} {
		t.Run(name, func(t *testing.T) {
			b := parity.Reference{Label: name, Model: p.load(t)}
			for _, recorded := range Golden(t, "golden_fp32.safetensors").Cases() {
				r, err := parity.Run(t.Context(), b, golden.Backend{Case: recorded}, recorded.ParityCase(), parity.Settings{Tolerances: golden.Float32()})
				require.NoError(t, err)
				if recorded.Name == p.caseName || p.caseName == "" {
					require.Error(t, r.Err(), "not seen in %s", recorded.Name)
					require.Equal(t, p.first, firstWord(r.First.Label))
					return
				}
				require.NoError(t, r.Err(), "%s is too short to show it", recorded.Name)
			}
			t.Fatal("no such case")
		})
	}
}

// firstWord is the tensor of a label, without its positions.
func firstWord(label string) string {
	word, _, _ := strings.Cut(label, " ")
	return word
}

func published(t *testing.T) gemma4.Config { return openTiny(t).Config }

func openTiny(t *testing.T) *checkpoint.Checkpoint {
	t.Helper()
	src, err := checkpoint.Open(tiny(t, "fp32"))
	require.NoError(t, err)
	t.Cleanup(func() { src.Close() })
	return src
}

// load builds the model with its mistake.
func (p plant) load(t *testing.T) *gemma4.Model {
	src := openTiny(t)
	a, err := arith.New("f32", 1)
	require.NoError(t, err)
	config, source := src.Config, gemma4.Source(src)
	if p.config != nil {
		p.config(&config)
	}
	if p.source != nil {
		source = p.source(source)
	}
	if p.arithmetic != nil {
		a = p.arithmetic(a)
	}
	m, err := gemma4.Load(config, source, a, gemma4.Options{Policies: p.policies})
	require.NoError(t, err)
	if p.model != nil {
		p.model(m)
	}
	return m
}

// fullRotary rotates all pairs of the full layers, as a helper does that does not know the proportional type.
func fullRotary(c *gemma4.Config) {
	full := c.RopeParameters["full_attention"]
	full.RopeType, full.PartialRotaryFactor = "default", 0
	c.RopeParameters = map[string]gemma4.RopeParameters{"full_attention": full, "sliding_attention": c.RopeParameters["sliding_attention"]}
}

// oneTheta uses the frequency base of the sliding layers everywhere.
func oneTheta(c *gemma4.Config) {
	full := c.RopeParameters["full_attention"]
	full.RopeTheta = c.RopeParameters["sliding_attention"].RopeTheta
	c.RopeParameters = map[string]gemma4.RopeParameters{"full_attention": full, "sliding_attention": c.RopeParameters["sliding_attention"]}
}

// donor makes layer l read the keys and values of another owner.
func donor(l, of int) func(*gemma4.Model) {
	return func(m *gemma4.Model) { m.Layers[l].KVSource = of }
}

// faulty is an arithmetic with single operations gone wrong.
type faulty struct {
	arith.Arithmetic
	scores   float32 // factor on attention scores, 0 for none
	pleScale float64 // the scale of the table that is left out, 0 for none
	embed    float64 // factor on the scale of the embeddings, 0 for none
	plusOne  bool    // norms multiply by 1 + gain
	erf      bool
}

func wrap(set func(*faulty)) func(arith.Arithmetic) arith.Arithmetic {
	return func(a arith.Arithmetic) arith.Arithmetic {
		f := &faulty{Arithmetic: a}
		set(f)
		return f
	}
}

func scaleEmbeddings(factor float64) func(arith.Arithmetic) arith.Arithmetic {
	return wrap(func(f *faulty) { f.embed = factor })
}

func (f *faulty) EmbeddingScale(y, row []float32, scale float64) {
	switch {
	case f.pleScale != 0 && math.Abs(scale-f.pleScale) < 1e-9:
		scale = 1
	case f.embed != 0 && math.Abs(scale-math.Sqrt(48)) < 1e-9:
		scale *= f.embed
	}
	f.Arithmetic.EmbeddingScale(y, row, scale)
}

func (f *faulty) RMSNorm(y, x, gain []float32, n int, eps float64) {
	if f.plusOne && gain != nil {
		gain = slices.Clone(gain)
		for i := range gain {
			gain[i]++
		}
	}
	f.Arithmetic.RMSNorm(y, x, gain, n, eps)
}

func (f *faulty) Scores(s, q []float32, k swa.View, spans []swa.Span) {
	f.Arithmetic.Scores(s, q, k, spans)
	for i := range s {
		if f.scores != 0 {
			s[i] *= f.scores
		}
	}
}

func (f *faulty) GELU(y, x []float32) {
	if !f.erf {
		f.Arithmetic.GELU(y, x)
		return
	}
	for i, v := range x {
		y[i] = float32(float64(v) / 2 * (1 + math.Erf(float64(v)/math.Sqrt2)))
	}
}

func (f *faulty) GELUMul(y, x, z []float32) {
	f.GELU(y, x)
	f.Mul(y, y, z)
}

// skipping is a source in which one layer adds nothing to the stream.
type skipping struct {
	gemma4.Source
	layer string // "layers.7."
}

func skipLayer(l int) func(gemma4.Source) gemma4.Source {
	return func(s gemma4.Source) gemma4.Source { return skipping{s, "layers." + string(rune('0'+l)) + "."} }
}

func (s skipping) Tensor(name string) (quant.Tensor, error) {
	t, err := s.Source.Tensor(name)
	switch name {
	case s.layer + "post_attention_layernorm.weight", s.layer + "post_feedforward_layernorm.weight", s.layer + "post_per_layer_input_norm.weight":
		t.Data = make([]byte, len(t.Data))
	case s.layer + "layer_scalar":
		t.Data = []byte{0, 0, 0x80, 0x3f}
	}
	return t, err
}
