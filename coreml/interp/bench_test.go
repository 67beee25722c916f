package interp_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"anelab/coreml/interp"
	"anelab/coreml/mil"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/half"
	"anelab/quant"

	"github.com/stretchr/testify/require"
)

// weights are random palettes, the same for the program and for the native model.
type weights struct {
	r     *rand.Rand
	named map[string]*quant.Palette
}

func (w *weights) palette(name string, rows, cols int) *quant.Palette {
	if p := w.named[name]; p != nil {
		return p
	}
	indices, lut := make([]byte, rows*cols/2), make([]float32, rows/32*16)
	for i := 0; i+8 <= len(indices); i += 8 {
		binary.LittleEndian.PutUint64(indices[i:], w.r.Uint64())
	}
	for i := range lut {
		lut[i] = half.RoundF16((float32(i%16) - 7.5) / 256)
	}
	p, err := quant.NewPalette(rows, cols, quant.Int4G32, quant.Tables{LUT: lut, Indices: indices})
	if err != nil {
		panic(err)
	}
	w.named[name] = p
	return p
}

// graph is a chunk as CoreML-LLM's converter writes it: E2B's sizes, explicit caches.
type graph struct {
	*builder
	w                       *weights
	hidden, ffn, ple, heads int
	context, window         int
}

// conv is a 1×1 convolution with a palette: x [1, C, 1, 1].
func (g *graph) conv(x, name string, rows, cols int) string {
	p := g.w.palette(name, rows, cols)
	shape := []int64{int64(rows), int64(cols), 1, 1}
	lut := make([]byte, 0, rows)
	for group := range p.Groups() {
		for _, v := range p.Table(group) {
			lut = binary.LittleEndian.AppendUint16(lut, half.F32ToF16(v))
		}
	}
	w := g.one("constexpr_lut_to_dense", "indices", mil.TensorValue(mil.TensorOf(mil.UInt4, shape...), p.Indices()),
		"lut", mil.TensorValue(mil.TensorOf(mil.Float16, int64(rows/32), 1, 1, 1, 16, 1), lut))
	return g.one("conv", "x", x, "weight", w, "strides", ints(1, 1), "pad_type", mil.Scalar("valid"), "pad", ints(0, 0, 0, 0), "dilations", ints(1, 1), "groups", mil.Scalar(int32(1)))
}

// norm is layer_norm([x, −x]) over the last axis, then the gain.
func (g *graph) norm(x string, n, axis int) string {
	z := g.one("concat", "values", []string{x, g.one("mul", "x", x, "y", f16(-1))}, "axis", mil.Scalar(int32(-1)), "interleave", mil.Scalar(false))
	z = g.one("layer_norm", "x", z, "axes", ints(int32(axis)), "epsilon", f16(1e-6))
	half := g.op("split", 2, "x", z, "split_sizes", ints(int32(n), int32(n)), "axis", mil.Scalar(int32(-1)))
	return g.one("mul", "x", half[0], "y", gains(n))
}

func (g *graph) toChannels(x string) string {
	return g.one("expand_dims", "x", g.one("transpose", "x", x, "perm", ints(0, 2, 1)), "axes", ints(2))
}

func (g *graph) toRows(x string) string {
	return g.one("transpose", "x", g.one("squeeze", "x", x, "axes", ints(2)), "perm", ints(0, 2, 1))
}

// heads4 is a projection as [1, H, 1, d].
func (g *graph) heads4(x string, heads, d int) string {
	x = g.one("reshape", "x", x, "shape", ints(1, int32(heads), int32(d), 1))
	return g.one("transpose", "x", x, "perm", ints(0, 1, 3, 2))
}

func (g *graph) headNorm(x string, heads, d int) string {
	x = g.norm(g.one("reshape", "x", x, "shape", ints(1, int32(heads), int32(d))), d, -1)
	return g.one("reshape", "x", x, "shape", ints(1, int32(heads), 1, int32(d)))
}

func (g *graph) rope(x string, d int, kind string) string {
	parts := g.op("split", 2, "x", x, "split_sizes", ints(int32(d/2), int32(d/2)), "axis", mil.Scalar(int32(-1)))
	turned := g.one("concat", "values", []string{g.one("mul", "x", parts[1], "y", f16(-1)), parts[0]}, "axis", mil.Scalar(int32(-1)), "interleave", mil.Scalar(false))
	return g.one("add", "x", g.one("mul", "x", x, "y", "cos_"+kind), "y", g.one("mul", "x", turned, "y", "sin_"+kind))
}

func (g *graph) vnorm(x string) string {
	mean := g.one("reduce_mean", "x", g.one("pow", "x", x, "y", f16(2)), "axes", ints(-1), "keep_dims", mil.Scalar(true))
	r := g.one("rsqrt", "x", g.one("add", "x", mean, "y", f16(1e-6)), "epsilon", mil.Scalar(float32(1e-12)))
	return g.one("mul", "x", x, "y", r)
}

// shifted drops the oldest row of a cache and appends the new one.
func (g *graph) shifted(cache, row string) string {
	rest := g.one("slice_by_index", "x", cache, "begin", ints(0, 0, 1, 0), "end", ints(1, 1, int32(g.window), 512), "end_mask", mil.Vector(true, true, true, true))
	return g.one("concat", "values", []string{rest, row}, "axis", mil.Scalar(int32(2)), "interleave", mil.Scalar(false))
}

// masked writes the new row where the mask is 1.
func (g *graph) masked(cache, row string) string {
	old := g.one("mul", "x", cache, "y", g.one("sub", "x", f16(1), "y", "update_mask"))
	wide := g.one("tile", "x", row, "reps", ints(1, 1, int32(g.context), 1))
	return g.one("add", "x", old, "y", g.one("mul", "x", wide, "y", "update_mask"))
}

// expanded repeats the one KV head for every query head, as repeat_interleave is converted.
func (g *graph) expanded(x string, rows, d int) string {
	h := int32(g.heads)
	x = g.one("tile", "x", g.one("transpose", "x", x, "perm", ints(1, 0, 2, 3)), "reps", ints(h, 1, 1, 1))
	x = g.one("transpose", "x", g.one("reshape", "x", x, "shape", ints(h, 1, 1, int32(rows), int32(d))), "perm", ints(1, 0, 2, 3, 4))
	return g.one("reshape", "x", x, "shape", ints(h, 1, int32(rows), int32(d)))
}

func (g *graph) attention(q, k, v, mask string, rows, d int) string {
	kt := g.one("transpose", "x", g.expanded(k, rows, d), "perm", ints(1, 0, -1, -2))
	s := g.one("add", "x", g.one("matmul", "x", q, "y", kt), "y", mask)
	m := g.one("reduce_max", "x", s, "axes", ints(-1), "keep_dims", mil.Scalar(true))
	e := g.one("exp", "x", g.one("sub", "x", s, "y", m))
	p := g.one("real_div", "x", e, "y", g.one("reduce_sum", "x", e, "axes", ints(-1), "keep_dims", mil.Scalar(true)))
	o := g.one("matmul", "x", p, "y", g.one("transpose", "x", g.expanded(v, rows, d), "perm", ints(1, 0, 2, 3)))
	o = g.one("reshape", "x", g.one("transpose", "x", o, "perm", ints(0, 2, 1, 3)), "shape", ints(1, 1, int32(g.heads*d)))
	return g.toChannels(o)
}

// layer is one decoder layer; it returns the new hidden state and caches.
func (g *graph) layer(x string, l int, full bool) (y string, caches []string) {
	name := func(s string) string { return fmt.Sprintf("layers.%d.%s.weight", l, s) }
	d, kind, rows, mask := 256, "s", g.window, "causal_mask_sliding"
	if full {
		d, kind, rows, mask = 512, "f", g.context, "causal_mask_full"
	}
	h := g.toChannels(g.norm(x, g.hidden, -1))
	q := g.rope(g.headNorm(g.heads4(g.conv(h, name("self_attn.q_proj"), g.heads*d, g.hidden), g.heads, d), g.heads, d), d, kind)
	k := g.rope(g.headNorm(g.heads4(g.conv(h, name("self_attn.k_proj"), d, g.hidden), 1, d), 1, d), d, kind)
	v := g.vnorm(g.heads4(g.conv(h, name("self_attn.v_proj"), d, g.hidden), 1, d))
	for i, row := range []string{k, v} {
		cache := g.input(fmt.Sprintf("cache_%d_%d", l, i), mil.TensorOf(mil.Float16, 1, 1, int64(rows), 512))
		write := g.masked
		if !full {
			row = g.one("pad", "x", row, "pad", ints(0, 0, 0, 0, 0, 0, 0, 256), "mode", mil.Scalar("constant"), "constant_val", f16(0))
			write = g.shifted
		}
		caches = append(caches, write(cache, row))
	}
	read := func(c string) string {
		return g.one("slice_by_index", "x", c, "begin", ints(0, 0, 0, 0), "end", ints(1, 1, int32(rows), int32(d)), "end_mask", mil.Vector(true, true, true, false))
	}
	a := g.toRows(g.conv(g.attention(q, read(caches[0]), read(caches[1]), mask, rows, d), name("self_attn.o_proj"), g.hidden, g.heads*d))
	x = g.one("add", "x", x, "y", g.norm(a, g.hidden, -1))

	h = g.toChannels(g.norm(x, g.hidden, -1))
	gate := g.one("gelu", "x", g.conv(h, name("mlp.gate_proj"), g.ffn, g.hidden), "mode", mil.Scalar("TANH_APPROXIMATION"))
	mlp := g.conv(g.one("mul", "x", gate, "y", g.conv(h, name("mlp.up_proj"), g.ffn, g.hidden)), name("mlp.down_proj"), g.hidden, g.ffn)
	x = g.one("add", "x", x, "y", g.norm(g.toRows(mlp), g.hidden, -1))

	gated := g.one("gelu", "x", g.conv(g.toChannels(x), name("per_layer_input_gate"), g.ple, g.hidden), "mode", mil.Scalar("TANH_APPROXIMATION"))
	row := g.one("slice_by_index", "x", "per_layer_combined", "begin", ints(0, 0, int32(l*g.ple)), "end", ints(1, 1, int32((l+1)*g.ple)), "end_mask", mil.Vector(true, true, false))
	p := g.conv(g.one("mul", "x", gated, "y", g.toChannels(row)), name("per_layer_projection"), g.hidden, g.ple)
	x = g.one("add", "x", x, "y", g.norm(g.toRows(p), g.hidden, -1))
	return g.one("mul", "x", x, "y", f16(0.5)), caches
}

// e2b is a chunk of so many layers, the last of five full.
func e2b(layers, context int) (*mil.Program, *weights, map[string]*interp.Tensor) {
	w := &weights{rand.New(rand.NewPCG(1, 2)), map[string]*quant.Palette{}}
	g := &graph{builder: newBuilder(), w: w, hidden: 1536, ffn: 6144, ple: 256, heads: 8, context: context, window: 512}
	x := g.input("hidden_states", mil.TensorOf(mil.Float16, 1, 1, 1536))
	g.input("per_layer_combined", mil.TensorOf(mil.Float16, 1, 1, int64(layers*256)))
	g.input("causal_mask_full", mil.TensorOf(mil.Float16, 1, 1, 1, int64(context)))
	g.input("causal_mask_sliding", mil.TensorOf(mil.Float16, 1, 1, 1, 512))
	g.input("update_mask", mil.TensorOf(mil.Float16, 1, 1, int64(context), 1))
	for kind, d := range map[string]int64{"s": 256, "f": 512} {
		g.input("cos_"+kind, mil.TensorOf(mil.Float16, 1, 1, 1, d))
		g.input("sin_"+kind, mil.TensorOf(mil.Float16, 1, 1, 1, d))
	}
	var outputs []string
	for l := range layers {
		var caches []string
		x, caches = g.layer(x, l, l%5 == 4)
		outputs = append(outputs, caches...)
	}
	inputs := map[string]*interp.Tensor{}
	for _, in := range g.inputs {
		shape := make([]int, len(in.Type.Shape))
		for i, n := range in.Type.Shape {
			shape[i] = int(n)
		}
		t := interp.NewTensor(mil.Float16, shape...)
		for i := range t.Floats {
			t.Floats[i] = half.RoundF16(w.r.Float32() - 0.5)
		}
		if in.Name == "update_mask" {
			clear(t.Floats)
			t.Floats[context/2] = 1
		}
		inputs[in.Name] = t
	}
	return g.program(append([]string{x}, outputs...)...), w, inputs
}

// source gives the native model the same palettes, and gains of one.
type source struct{ *weights }

// Path implements gemma4.Source.
func (s source) Path() string { return "bench" }

// Has implements gemma4.Source.
func (s source) Has(string) bool { return true }

// Tensor implements gemma4.Source.
func (s source) Tensor(name string) (quant.Tensor, error) {
	n := map[string]int{"norm.weight": 1536, "per_layer_projection_norm.weight": 256}[name]
	var l int
	var rest string
	if _, err := fmt.Sscanf(name, "layers.%d.%s", &l, &rest); err == nil {
		n = 1536
		switch rest {
		case "layer_scalar":
			n = 1
		case "self_attn.q_norm.weight", "self_attn.k_norm.weight":
			if n = 256; l%5 == 4 {
				n = 512
			}
		}
	}
	data := make([]byte, 0, 2*n)
	for range n {
		data = binary.LittleEndian.AppendUint16(data, half.F32ToBF16(1))
	}
	return quant.Tensor{Name: name, DType: quant.BF16, Shape: []int{n}, Data: data}, nil
}

// Matrix implements gemma4.MatrixSource.
func (s source) Matrix(name string) (quant.Matrix, error) {
	p := s.named[name]
	switch name {
	case "embed_tokens.weight":
		p = s.palette(name, 64, 1536)
	case "embed_tokens_per_layer.weight":
		p = s.palette(name, 64, 1280)
	case "per_layer_model_projection.weight":
		p = s.palette(name, 1280, 1536)
	}
	packed, ok := quant.Pack4(p)
	if !ok {
		return p, nil
	}
	return packed, nil
}

// Head implements gemma4.MatrixSource.
func (s source) Head() (quant.Matrix, error) { return nil, nil }

// BenchmarkE2BStep times one decoding step of a five-layer chunk of E2B's dimensions with 4-bit palettes beside one of the native model of
// the same weights at the same depth. The two take turns, so that both meet the same machine; medians, and native time over interpreted
// time in percent.
func BenchmarkE2BStep(b *testing.B) {
	const context, layers = 2048, 5
	p, w, inputs := e2b(layers, context)
	for _, pair := range []struct {
		precision interp.Precision
		mode      string
	}{{interp.Fast, "f32"}, {interp.ANE, "ane"}, {interp.FP16, ""}, {interp.Exact, ""}} {
		b.Run(pair.precision.String(), func(b *testing.B) {
			interpreted := interpStep(b, p, interp.State(inputs).Clone(), pair.precision)
			if pair.mode == "" {
				b.ReportAllocs()
				for b.Loop() {
					interpreted()
				}
				return
			}
			takeTurns(b, nativeStep(b, w, pair.mode, context), interpreted)
		})
	}
}

// takeTurns times two functions one after the other, and reports their medians in milliseconds and their ratio.
func takeTurns(b *testing.B, native, interpreted func()) {
	timed := func(step func()) float64 {
		start := time.Now()
		step()
		return 1e3 * time.Since(start).Seconds()
	}
	var ours, theirs []float64
	for b.Loop() {
		theirs = append(theirs, timed(native))
		ours = append(ours, timed(interpreted))
	}
	median := func(ms []float64) float64 {
		slices.Sort(ms)
		return ms[len(ms)/2]
	}
	b.ReportMetric(median(theirs), "native-ms")
	b.ReportMetric(median(ours), "interp-ms")
	b.ReportMetric(100*median(theirs)/median(ours), "%native")
}

func interpStep(b *testing.B, p *mil.Program, inputs map[string]*interp.Tensor, precision interp.Precision) func() {
	m, err := interp.New(p, interp.Options{Precision: precision})
	require.NoError(b, err)
	require.NoError(b, m.Prepare("main"))
	step := func() {
		out, err := m.Run(context.Background(), "main", inputs, interp.Call{})
		require.NoError(b, err)
		for i, name := range p.Functions[0].Body.Outputs[1:] { // caches go in again, as a host does it
			cache := fmt.Sprintf("cache_%d_%d", i/2, i%2)
			m.Recycle(inputs[cache])
			inputs[cache] = out[name]
		}
	}
	step()
	return step
}

func nativeStep(b *testing.B, w *weights, mode string, size int) func() {
	a, err := arith.New(mode, 0)
	require.NoError(b, err)
	types := []string{"sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention"}
	c := gemma4.Config{HiddenSize: 1536, IntermediateSize: gemma4.IntList{6144}, NumHiddenLayers: 5, LayerTypes: types,
		NumAttentionHeads: 8, NumKeyValueHeads: 1, HeadDim: 256, GlobalHeadDim: 512, SlidingWindow: 512, HiddenSizePerLayer: 256,
		VocabSize: 64, VocabSizePerLayerInput: 64, RMSNormEps: 1e-6, FinalLogitSoftcapping: 30, MaxPositionEmbeddings: 4096,
		RopeParameters: map[string]gemma4.RopeParameters{
			"sliding_attention": {RopeType: "default", RopeTheta: 1e4},
			"full_attention":    {RopeType: "proportional", RopeTheta: 1e6, PartialRotaryFactor: 0.25},
		}}
	m, err := gemma4.Load(c, source{w}, a, gemma4.Options{})
	require.NoError(b, err)
	s, err := m.NewState(size)
	require.NoError(b, err)
	depth := size / 2
	_, err = s.Prefill(context.Background(), make([]int, depth))
	require.NoError(b, err)
	return func() {
		if s.Next() == size {
			require.NoError(b, s.Truncate(depth))
		}
		_, err := s.Step(context.Background(), 3)
		require.NoError(b, err)
	}
}
