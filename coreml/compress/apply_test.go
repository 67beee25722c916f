package compress

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anelab/coreml/census"
	"anelab/coreml/interp"
	"anelab/coreml/mil"
	"anelab/coreml/mlpackage"
	"anelab/internal/half"
	"anelab/internal/shareddata"
	"anelab/quant"

	"github.com/stretchr/testify/require"
)

var background = context.Background()

func f16(xs ...float32) mil.Raw {
	var b []byte
	for _, x := range xs {
		b = binary.LittleEndian.AppendUint16(b, half.F32ToF16(x))
	}
	return mil.Raw(b)
}

// wave are n different numbers of both signs.
func wave(n int) []float32 {
	xs := make([]float32, n)
	for i := range xs {
		xs[i] = float32(math.Sin(float64(i*i))) * float32(1+i%7)
	}
	return xs
}

// builder makes a program with one function by hand.
type builder struct {
	f    *mil.Function
	held map[string]mil.Data
}

func newBuilder(opset mil.Opset, inputs ...mil.Variable) *builder {
	b := &builder{f: &mil.Function{Name: mil.MainFunction, Opset: opset, Body: &mil.Block{}}, held: map[string]mil.Data{}}
	for _, in := range inputs {
		b.f.Inputs = append(b.f.Inputs, mil.Input{Variable: in})
	}
	return b
}

// constant adds a weight in a weights file.
func (b *builder) constant(name string, xs []float32, shape ...int64) mil.Binding {
	v := &mil.Value{Type: mil.TensorOf(mil.Float16, shape...), Content: &held{[]byte(f16(xs...))}}
	b.op("const", name, v.Type).Attributes = append(b.last().Attributes, mil.Attribute{Name: "val", Value: v})
	return mil.Ref(name)
}

func (b *builder) last() *mil.Op { return b.f.Body.Ops[len(b.f.Body.Ops)-1] }

// op adds an op with one output, which becomes that of the function.
func (b *builder) op(opType, name string, t mil.Type, args ...mil.Argument) *mil.Op {
	b.f.Body.Ops = append(b.f.Body.Ops, &mil.Op{Type: opType, Inputs: args, Outputs: []mil.Variable{{Name: name, Type: t}},
		Attributes: []mil.Attribute{{Name: "name", Value: mil.Scalar(name)}}})
	b.f.Body.Outputs = []string{name}
	return b.last()
}

func (b *builder) program(t *testing.T) *mil.Program {
	spec := int(b.f.Opset)
	p := &mil.Program{SpecVersion: spec, Functions: []*mil.Function{b.f}}
	p.Sort()
	require.NoError(t, mil.Check(p))
	return p
}

// linearProgram is x·wᵀ with w [64, 48].
func linearProgram(t *testing.T, opset mil.Opset, w []float32) *mil.Program {
	b := newBuilder(opset, mil.Variable{Name: "x", Type: mil.TensorOf(mil.Float16, 1, 48)})
	b.op("linear", "y", mil.TensorOf(mil.Float16, 1, 64), mil.Arg("x", mil.Ref("x")), mil.Arg("weight", b.constant("w", w, 64, 48)))
	return b.program(t)
}

var four = quant.Options{Bits: 4, Group: 32}

// run runs the only function on a wave.
func run(t *testing.T, p *mil.Program, precision interp.Precision) []float32 {
	in := p.Functions[0].Inputs[0]
	dims := make([]int, len(in.Type.Shape))
	n, _ := in.Type.Count()
	for i, d := range in.Type.Shape {
		dims[i] = int(d)
	}
	x := wave(int(n))
	for i := range x {
		x[i] /= 16
	}
	out, err := interp.Run(background, p, p.Functions[0].Name, map[string]*interp.Tensor{in.Name: interp.F16(x, dims...)}, interp.Options{Precision: precision})
	require.NoError(t, err)
	return out[p.Functions[0].Body.Outputs[0]].Floats
}

// decoded is a program with the weights that a compressed matrix stands for, dense.
func decoded(t *testing.T, p *mil.Program, name string, m quant.Matrix) {
	for op := range p.Functions[0].Body.All() {
		if op.Type != "const" || op.Name() != name {
			continue
		}
		var xs []float32
		row := make([]float32, m.Cols())
		for r := range m.Rows() {
			m.Row(row, r)
			xs = append(xs, row...)
		}
		op.Attribute("val").Content = &held{[]byte(f16(xs...))}
		return
	}
	t.Fatalf("no %s", name)
}

// oracle: package quant by itself; invariant: a program with palettes computes what the dense program of the decoded weights does.
func TestCompressedProgramsComputeWhatQuantDecodes(t *testing.T) {
	for name, c := range map[string]struct {
		o     Options
		shape []int // of the matrix
		axis  int
		build func(b *builder, w []float32)
	}{
		"linear":       {Options{Palette: four}, []int{64, 48}, 0, buildLinear},
		"one table":    {Options{Palette: quant.Options{Bits: 6}}, []int{64, 48}, 0, buildLinear},
		"uniform":      {Options{Palette: quant.Options{Mode: quant.Uniform, Bits: 3, Group: 16}}, []int{64, 48}, 0, buildLinear},
		"vectors":      {Options{Palette: quant.Options{Bits: 4, Group: 32, Vector: 2}}, []int{64, 48}, 0, buildLinear},
		"scaled":       {Options{Palette: quant.Options{Bits: 4, Group: 32, ChannelScale: true}}, []int{64, 48}, 0, buildLinear},
		"matmul y":     {Options{Palette: quant.Options{Bits: 4, Group: 16}}, []int{48, 64}, 1, buildMatmul},
		"conv 1x1":     {Options{Palette: four}, []int{64, 48}, 0, buildConv},
		"int8 per row": {Options{Linear: &Linear{Spec: linearSpec(8, quant.PerRow, 0)}}, []int{64, 48}, 0, buildLinear},
		"int4 blocks":  {Options{Linear: &Linear{Spec: linearSpec(4, quant.PerBlock, 16)}}, []int{64, 48}, 0, buildLinear},
		"uint8 offset": {Options{Linear: &Linear{Spec: quant.LinearSpec{Integer: quant.U8, Bits: 8, Scale: quant.F16}, Symmetry: quant.Asymmetric}}, []int{48, 64}, 0, buildMatmul},
	} {
		t.Run(name, func(t *testing.T) {
			w := wave(64 * 48)
			make := func() *mil.Program {
				b := newBuilder(mil.CoreML8, mil.Variable{Name: "x", Type: mil.TensorOf(mil.Float16, 1, 48)})
				if name == "conv 1x1" {
					b.f.Inputs[0].Type = mil.TensorOf(mil.Float16, 1, 48, 1, 3)
				}
				c.build(b, w)
				return b.program(t)
			}
			dense, compressed := make(), make()
			m, err := quant.Dense(quant.Tensor{DType: quant.F16, Shape: c.shape, Data: []byte(f16(w...))})
			require.NoError(t, err)
			var want quant.Matrix
			if c.o.Linear != nil {
				want, err = quant.Quantize(m, c.o.Linear.Spec, c.o.Linear.Symmetry)
			} else {
				o := c.o.Palette
				o.Axis = c.axis
				want, err = quant.Palettize(background, m, o, nil)
			}
			require.NoError(t, err)
			decoded(t, dense, "w", want)

			outcomes, err := Apply(background, compressed, c.o, nil)
			require.NoError(t, err)
			require.Len(t, outcomes, 1)
			require.Empty(t, outcomes[0].Kept)
			require.NoError(t, mil.Check(compressed))
			require.Equal(t, run(t, dense, interp.FP16), run(t, compressed, interp.FP16))
			weights := census.Weights(compressed.Functions[0])
			require.Len(t, weights, 1)
			require.Equal(t, outcomes[0].After, weights[0].Encoding())
			require.Equal(t, outcomes[0].BytesAfter, weights[0].Bytes())
		})
	}
}

func linearSpec(bits int, g quant.Granularity, block int) quant.LinearSpec {
	return quant.LinearSpec{Integer: quant.I8, Bits: bits, Granularity: g, Block: block, Scale: quant.F16}
}

func buildLinear(b *builder, w []float32) {
	b.op("linear", "y", mil.TensorOf(mil.Float16, 1, 64), mil.Arg("weight", b.constant("w", w, 64, 48)), mil.Arg("x", mil.Ref("x")))
}

func buildMatmul(b *builder, w []float32) {
	b.op("matmul", "y", mil.TensorOf(mil.Float16, 1, 64), mil.Arg("x", mil.Ref("x")), mil.Arg("y", b.constant("w", w, 48, 64)))
}

func buildConv(b *builder, w []float32) {
	b.op("conv", "y", mil.TensorOf(mil.Float16, 1, 64, 1, 3), mil.Arg("weight", b.constant("w", w, 64, 48, 1, 1)), mil.Arg("x", mil.Ref("x")))
}

// hand: which dimension has the channels.
func TestChannelsFollowTheOp(t *testing.T) {
	flag := func(name string) mil.Argument { return mil.Arg(name, mil.Literal(mil.Scalar(true))) }
	for name, c := range map[string]struct {
		op    string
		param string
		flags []mil.Argument
		want  int
	}{
		"linear":              {"linear", "weight", nil, 0},
		"conv_transpose":      {"conv_transpose", "weight", nil, 1},
		"matmul y":            {"matmul", "y", nil, 2},
		"matmul y transposed": {"matmul", "y", []mil.Argument{flag("transpose_y")}, 1},
		"matmul x":            {"matmul", "x", nil, 1},
		"matmul x transposed": {"matmul", "x", []mil.Argument{flag("transpose_x")}, 2},
	} {
		op := &mil.Op{Type: c.op, Inputs: append(c.flags, mil.Arg(c.param, mil.Ref("w")))}
		w := &census.Weight{Name: "w", Type: mil.TensorOf(mil.Float16, 1, 48, 64), Readers: []*mil.Op{op}}
		axis, kept := (&judge{}).channelAxis(w)
		require.Empty(t, kept, name)
		require.Equal(t, c.want, axis, name)
	}
}

// hand: every reason to leave a constant alone.
func TestReasonsToKeep(t *testing.T) {
	b := newBuilder(mil.CoreML8, mil.Variable{Name: "x", Type: mil.TensorOf(mil.Float16, 1, 48)}, mil.Variable{Name: "i", Type: mil.TensorOf(mil.Int32, 3)})
	out := mil.TensorOf(mil.Float16, 1, 64)
	linear := func(y, w string, shape ...int64) {
		b.op("linear", y, mil.TensorOf(mil.Float16, 1, shape[0]), mil.Arg("weight", b.constant(w, wave(int(shape[0]*shape[1])), shape...)), mil.Arg("x", mil.Ref("x")))
	}
	linear("y", "plain", 64, 48)
	linear("small_out", "small", 8, 48)
	linear("lm_head", "named", 64, 48)
	linear("odd_out", "odd", 50, 48)
	b.op("linear", "tied_out", out, mil.Arg("weight", b.constant("tied", wave(64*48), 64, 48)), mil.Arg("x", mil.Ref("x")))
	b.op("gather", "looked_up", mil.TensorOf(mil.Float16, 3, 48), mil.Arg("indices", mil.Ref("i")), mil.Arg("x", mil.Ref("tied")), mil.Arg("axis", mil.Literal(mil.Scalar(int32(0)))),
		mil.Arg("batch_dims", mil.Literal(mil.Scalar(int32(0)))), mil.Arg("validate_indices", mil.Literal(mil.Scalar(false))))
	infinite := wave(64 * 48)
	infinite[7] = float32(math.Inf(-1))
	b.op("linear", "masked", out, mil.Arg("weight", b.constant("minus_infinity", infinite, 64, 48)), mil.Arg("x", mil.Ref("x")))
	p := b.program(t)
	before := len(p.Functions[0].Body.Ops)

	outcomes, err := Apply(background, p, Options{Palette: four, Selection: Selection{Skip: []string{"lm_*"}}}, nil)
	require.NoError(t, err)
	got := map[string]string{}
	for _, o := range outcomes {
		got[o.Name] = o.Kept
	}
	require.Equal(t, map[string]string{
		"plain": "", "small": "has at most 2048 elements", "named": "skipped by name", "odd": "its 50 channels are not divisible into groups of 32",
		"tied": "is read by gather looked_up", "minus_infinity": got["minus_infinity"],
	}, got)
	require.Contains(t, got["minus_infinity"], "1 infinite or undefined f16 weights", "QNT-06")
	require.Len(t, p.Functions[0].Body.Ops, before)
	require.NoError(t, mil.Check(p))

	_, err = Select(p, Selection{Skip: []string{"["}})
	require.ErrorContains(t, err, `pattern "["`)
}

// QNT-06: the mask of a causal model, −Inf above the diagonal, is added and not multiplied; it is left as it is, and a finite
// one too. (hand)
func TestQNT06MasksAreNoWeights(t *testing.T) {
	for _, low := range []float32{float32(math.Inf(-1)), -1e4} {
		mask := make([]float32, 64*64)
		for i := range mask {
			if i%64 > i/64 {
				mask[i] = low
			}
		}
		b := newBuilder(mil.CoreML8, mil.Variable{Name: "x", Type: mil.TensorOf(mil.Float16, 1, 1, 64, 64)})
		b.op("add", "y", mil.TensorOf(mil.Float16, 1, 1, 64, 64), mil.Arg("x", mil.Ref("x")), mil.Arg("y", b.constant("mask", mask, 1, 1, 64, 64)))
		p := b.program(t)
		outcomes, err := Apply(background, p, Options{Palette: four}, nil)
		require.NoError(t, err)
		require.Equal(t, "is read by add y", outcomes[0].Kept)
		require.Equal(t, "const", p.Functions[0].Body.Ops[0].Type)
	}
}

// QNT-03: rows that differ in size by 100 ruin the small ones under one table; a gate keeps that weight, groups pass it. (hand)
func TestQNT03GateKeepsWhatWouldBeRuined(t *testing.T) {
	w := wave(64 * 48)
	for i := range w {
		w[i] *= float32(math.Pow(100, float64(i/48)/63)) / 100
	}
	gate := quant.Gate{Cosine: 0.98, WorstCosine: 0.95}
	p := linearProgram(t, mil.CoreML8, w)
	outcomes, err := Apply(background, p, Options{Palette: quant.Options{Bits: 4}, Gate: gate}, nil)
	require.NoError(t, err)
	require.Contains(t, outcomes[0].Kept, "would lose too much: row")
	require.Equal(t, outcomes[0].Bytes(), outcomes[0].BytesAfter)
	require.Equal(t, "const", p.Functions[0].Body.Ops[0].Type)
	outcomes, err = Apply(background, p, Options{Palette: quant.Options{Bits: 4, Group: 1}, Gate: gate}, nil)
	require.NoError(t, err)
	require.Empty(t, outcomes[0].Kept)
	require.Greater(t, outcomes[0].Loss.WorstCosine, 0.95)
}

// QNT-02: scales are folded into the tables; no op is left that multiplies at run time, or that scales the result. (hand)
func TestQNT02NoScaleBehindThePalette(t *testing.T) {
	p := linearProgram(t, mil.CoreML8, wave(64*48))
	_, err := Apply(background, p, Options{Palette: quant.Options{Bits: 4, ChannelScale: true}}, nil)
	require.NoError(t, err)
	var types []string
	for op := range p.Functions[0].Body.All() {
		types = append(types, op.Type)
	}
	require.Equal(t, []string{"constexpr_lut_to_dense", "linear"}, types)
	lut := p.Functions[0].Body.Ops[0].Input("lut")[0].Value
	require.Equal(t, []int64{1, 48, 16, 1}, lut.Type.Shape, "a table per input")
	require.Equal(t, mil.Float16, lut.Type.DType)
}

// QNT-07: 17 values in a group are too many for 4 bits; the weight is named with its reason, 16 are exact. (hand)
func TestQNT07UniqueNamesTheWeight(t *testing.T) {
	few := func(n int) []float32 {
		w := make([]float32, 64*48)
		for i := range w {
			w[i] = float32(i%n) / 8
		}
		return w
	}
	p := linearProgram(t, mil.CoreML8, few(17))
	outcomes, err := Apply(background, p, Options{Palette: quant.Options{Mode: quant.Unique, Bits: 4, Group: 32}}, nil)
	require.NoError(t, err)
	require.Equal(t, "w", outcomes[0].Name)
	require.Contains(t, outcomes[0].Kept, "17 distinct values, want at most 16 in a table")
	p = linearProgram(t, mil.CoreML8, few(16))
	want := run(t, p, interp.FP16)
	outcomes, err = Apply(background, p, Options{Palette: quant.Options{Mode: quant.Unique, Group: 32}}, nil)
	require.NoError(t, err)
	require.Equal(t, "palette4", outcomes[0].After)
	require.Zero(t, outcomes[0].Loss.SSE)
	require.Equal(t, want, run(t, p, interp.FP16))
}

// QNT-14: a blob that an embedding and a head share by name is left; one that two constants share by place is two tensors, and
// only the head's changes. Two functions with one blob get one result. (hand)
func TestQNT14TiedWeights(t *testing.T) {
	b := newBuilder(mil.CoreML8, mil.Variable{Name: "x", Type: mil.TensorOf(mil.Float16, 1, 48)}, mil.Variable{Name: "i", Type: mil.TensorOf(mil.Int32, 3)})
	b.op("linear", "head_out", mil.TensorOf(mil.Float16, 1, 64), mil.Arg("weight", b.constant("head", wave(64*48), 64, 48)), mil.Arg("x", mil.Ref("x")))
	tied := b.f.Body.Ops[0].Attribute("val")
	b.constant("table", wave(64*48), 64, 48)
	b.last().Attributes[1].Value = tied
	b.op("gather", "row", mil.TensorOf(mil.Float16, 3, 48), mil.Arg("indices", mil.Ref("i")), mil.Arg("x", mil.Ref("table")), mil.Arg("axis", mil.Literal(mil.Scalar(int32(0)))),
		mil.Arg("batch_dims", mil.Literal(mil.Scalar(int32(0)))), mil.Arg("validate_indices", mil.Literal(mil.Scalar(false))))
	p := b.program(t)
	again := *p.Functions[0]
	again.Name, again.Body = "again", &mil.Block{Outputs: p.Functions[0].Body.Outputs}
	for _, op := range p.Functions[0].Body.Ops {
		c := *op
		again.Body.Ops = append(again.Body.Ops, &c)
	}
	p.Functions = append(p.Functions, &again)
	p.Sort()
	outcomes, err := Apply(background, p, Options{Palette: four}, nil)
	require.NoError(t, err)
	require.NoError(t, mil.Check(p))
	kept := map[string]string{}
	for _, o := range outcomes {
		kept[o.Function+"/"+o.Name] = o.Kept + o.Shared
	}
	require.Equal(t, map[string]string{"again/head": "", "again/table": "is read by gather row", "main/head": "again/head", "main/table": "is read by gather row"}, kept)
	require.Same(t, p.Functions[0].Body.Ops[0].Input("lut")[0].Value, p.Functions[1].Body.Ops[0].Input("lut")[0].Value)
}

// hand: before iOS 18 a palette is one table in attributes; what that form cannot say is a reason to keep.
func TestOlderOpsets(t *testing.T) {
	dense := linearProgram(t, mil.CoreML6, wave(64*48))
	m, err := quant.Dense(quant.Tensor{DType: quant.F16, Shape: []int{64, 48}, Data: []byte(f16(wave(64 * 48)...))})
	require.NoError(t, err)
	q, err := quant.Palettize(background, m, quant.Options{Bits: 6}, nil)
	require.NoError(t, err)
	decoded(t, dense, "w", q)
	p := linearProgram(t, mil.CoreML6, wave(64*48))
	outcomes, err := Apply(background, p, Options{Palette: quant.Options{Bits: 6}}, nil)
	require.NoError(t, err)
	require.Empty(t, outcomes[0].Kept)
	require.NoError(t, mil.Check(p))
	require.Equal(t, run(t, dense, interp.FP16), run(t, p, interp.FP16))
	outcomes, err = Apply(background, linearProgram(t, mil.CoreML5, wave(64*48)), Options{Palette: quant.Options{Bits: 6}}, nil)
	require.NoError(t, err)
	require.Contains(t, outcomes[0].Kept, "opset ios15 has no compressed constants")
	for want, o := range map[string]Options{"one table for all": {Palette: four}, "too old for integers": {Linear: &Linear{Spec: linearSpec(8, quant.PerRow, 0)}}} {
		outcomes, err = Apply(background, linearProgram(t, mil.CoreML6, wave(64*48)), o, nil)
		require.NoError(t, err)
		require.Contains(t, outcomes[0].Kept, want)
	}
}

// hand: a work that is cancelled, or whose store is full, leaves the program as it was.
func TestFailuresLeaveTheProgram(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	p := linearProgram(t, mil.CoreML8, wave(64*48))
	_, err := Apply(ctx, p, Options{Palette: four}, func(int64, int64) { cancel() })
	if err == nil { // the only group may be done before anybody looks
		_, err = Apply(ctx, linearProgram(t, mil.CoreML8, wave(64*48)), Options{Palette: four}, nil)
	}
	require.ErrorIs(t, err, context.Canceled)
	p = linearProgram(t, mil.CoreML8, wave(64*48))
	_, err = Apply(background, p, Options{Palette: four, Store: full{}}, nil)
	require.ErrorContains(t, err, "main/w: no space")
	require.Equal(t, "const", p.Functions[0].Body.Ops[0].Type)
	for _, o := range []Options{{Palette: quant.Options{Bits: 5}}, {Palette: quant.Options{}}, {Linear: &Linear{Spec: quant.LinearSpec{Bits: 3}}},
		{Palette: quant.Options{Bits: 4, Mode: quant.Uniform, Vector: 2, Group: 4}}, {Palette: quant.Options{Bits: 4, Vector: 2, Group: 3}}} {
		_, err = Apply(background, p, o, nil)
		require.Error(t, err, o)
	}
}

// full is a store without room.
type full struct{}

func (full) Put([]byte) (mil.Data, error) { return nil, fmt.Errorf("no space") }

// QNT-13: three chunks, one worker and many, in any order: the files are equal byte for byte. (invariant)
func TestQNT13PackagesDoNotDependOnWorkers(t *testing.T) {
	path := filepath.Join(shareddata.ModuleRoot(t), "testdata", "coreml", "ops", "gemma_mlp_block.mlpackage")
	var first []byte
	for _, n := range []int{1, 2, 8} {
		packed := written(t, path, n)
		if first == nil {
			first = packed
		}
		require.Equal(t, first, packed, "%d workers", n)
	}
}

// oracle: the palettized chunks that coremltools made of the fp16 ones have the same names in the same forms.
func TestSelectionIsThatOfTheConverter(t *testing.T) {
	for _, path := range shareddata.Cases(t, "coreml/chunks/*_w4/*.mlpackage") {
		dense := strings.Replace(path, "_w4", "_fp16", 1)
		a, err := mlpackage.Open(dense)
		require.NoError(t, err)
		b, err := mlpackage.Open(path)
		require.NoError(t, err)
		_, err = Apply(background, a.Program, Options{Palette: four}, nil)
		require.NoError(t, err)
		require.Equal(t, tables(b.Program), tables(a.Program), path)
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
	}
}

// tables are the shapes of all tables, in order; a converter renames what it replaces.
func tables(p *mil.Program) (all []string) {
	for _, f := range p.Functions {
		for op := range f.Body.All() {
			if op.Type == "constexpr_lut_to_dense" {
				all = append(all, f.Name+" "+op.Input("lut")[0].Value.Type.String())
			}
		}
	}
	slices.Sort(all)
	return all
}
