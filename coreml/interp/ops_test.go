package interp_test

import (
	"context"
	"math"
	"testing"

	"anelab/coreml/interp"
	"anelab/coreml/mil"

	"github.com/stretchr/testify/require"
)

func upTo(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i)
	}
	return x
}

// hand: ops that the packages in coreml/ops do not hold, worked out on small tensors. x is the input, the rest are constants.
func TestOpsByHand(t *testing.T) {
	i32 := func(x int32) *mil.Value { return mil.Scalar(x) }
	for _, c := range []struct {
		op    string
		x     []float32
		shape []int
		args  []any
		want  []float32
		dims  []int
	}{
		{"flatten2d", upTo(6), []int{1, 2, 3}, []any{"axis", i32(2)}, upTo(6), []int{2, 3}},
		{"crop", upTo(9), []int{1, 1, 3, 3}, []any{"crop_height", ints(1, 0), "crop_width", ints(0, 2)}, []float32{3, 6}, []int{1, 1, 2, 1}},
		{"sliding_windows", upTo(5), []int{5}, []any{"axis", i32(0), "size", i32(3), "stride", i32(2)}, []float32{0, 1, 2, 2, 3, 4}, []int{2, 3}},
		{"pad", upTo(3), []int{3}, []any{"pad", ints(2, 1), "mode", mil.Scalar("reflect"), "constant_val", f16(0)}, []float32{2, 1, 0, 1, 2, 1}, []int{6}},
		{"pad", upTo(3), []int{3}, []any{"pad", ints(2, 1), "mode", mil.Scalar("replicate"), "constant_val", f16(0)}, []float32{0, 0, 0, 1, 2, 2}, []int{6}},
		{"pixel_shuffle", upTo(4), []int{1, 4, 1, 1}, []any{"upscale_factor", i32(2)}, upTo(4), []int{1, 1, 2, 2}},
		{"pixel_shuffle", upTo(8), []int{1, 8, 1, 1}, []any{"upscale_factor", i32(2)}, upTo(8), []int{1, 2, 2, 2}},
		{"depth_to_space", upTo(8), []int{1, 8, 1, 1}, []any{"block_size", i32(2)}, []float32{0, 2, 4, 6, 1, 3, 5, 7}, []int{1, 2, 2, 2}},
		{"space_to_depth", upTo(4), []int{1, 1, 2, 2}, []any{"block_size", i32(2)}, upTo(4), []int{1, 4, 1, 1}},
		{"pixel_unshuffle", upTo(8), []int{1, 2, 2, 2}, []any{"downscale_factor", i32(2)}, upTo(8), []int{1, 8, 1, 1}},
		{"reduce_l1_norm", []float32{-1, 2, -3, 4}, []int{2, 2}, []any{"axes", ints(1)}, []float32{3, 7}, []int{2}},
		{"reduce_log_sum", []float32{1, 3}, []int{2}, []any{"axes", ints(0), "keep_dims", mil.Scalar(true)}, []float32{1.3862944}, []int{1}},
		{"batch_norm", []float32{1, 2, 3, 4}, []int{1, 2, 2}, []any{"mean", tensor([]float32{1, 2}, 2), "variance", tensor([]float32{4, 1}, 2), "epsilon", f16(0)}, []float32{0, 0.5, 1, 2}, []int{1, 2, 2}},
		{"instance_norm", []float32{1, 3, 2, 6}, []int{1, 2, 2}, []any{"gamma", tensor([]float32{2, 1}, 2), "beta", tensor([]float32{0, 5}, 2), "epsilon", f16(0)}, []float32{-2, 2, 4, 6}, []int{1, 2, 2}},
		{"l2_norm", []float32{3, 4}, []int{1, 1, 2}, []any{"epsilon", f16(0)}, []float32{0.6, 0.8}, []int{1, 1, 2}},
		{"prelu", []float32{-1, -2, 3, -4}, []int{1, 2, 2}, []any{"alpha", tensor([]float32{0.5, 0.25}, 2)}, []float32{-0.5, -1, 3, -1}, []int{1, 2, 2}},
		{"softplus_parametric", []float32{0, 0}, []int{1, 2, 1}, []any{"alpha", tensor([]float32{1, 2}, 2), "beta", tensor([]float32{1, 1}, 2)}, []float32{0.6931472, 1.3862944}, []int{1, 2, 1}},
		{"elu", []float32{-1, 2}, []int{2}, []any{"alpha", f16(2)}, []float32{-1.2642411, 2}, []int{2}},
		{"leaky_relu", []float32{-4, 2}, []int{2}, []any{"alpha", f16(0.25)}, []float32{-1, 2}, []int{2}},
		{"thresholded_relu", []float32{0.5, 2}, []int{2}, []any{"alpha", f16(1)}, []float32{0, 2}, []int{2}},
		{"clamped_relu", []float32{-2, 1, 9}, []int{3}, []any{"alpha", f16(0.5), "beta", f16(6)}, []float32{-1, 1, 6}, []int{3}},
		{"linear_activation", []float32{3}, []int{1}, []any{"alpha", f16(2), "beta", f16(1)}, []float32{7}, []int{1}},
		{"scaled_tanh", []float32{0.5}, []int{1}, []any{"alpha", f16(2), "beta", f16(2)}, []float32{1.5231884}, []int{1}},
		{"sigmoid_hard", []float32{-9, 1, 9}, []int{3}, []any{"alpha", f16(0.25), "beta", f16(0.5)}, []float32{0, 0.75, 1}, []int{3}},
		{"relu6", []float32{-1, 3, 9}, []int{3}, nil, []float32{0, 3, 6}, []int{3}},
		{"softsign", []float32{-3, 1}, []int{2}, nil, []float32{-0.75, 0.5}, []int{2}},
		{"cumsum", []float32{1, 2, 4}, []int{3}, []any{"axis", i32(0), "exclusive", mil.Scalar(true)}, []float32{0, 1, 3}, []int{3}},
		{"cumsum", []float32{1, 2, 4}, []int{3}, []any{"axis", i32(0), "reverse", mil.Scalar(true)}, []float32{7, 6, 4}, []int{3}},
		{"tile", upTo(4), []int{2, 2}, []any{"reps", ints(2, 1)}, []float32{0, 1, 2, 3, 0, 1, 2, 3}, []int{4, 2}},
		{"tile", upTo(2), []int{2, 1}, []any{"reps", ints(1, 3)}, []float32{0, 0, 0, 1, 1, 1}, []int{2, 3}},
		{"exp2", []float32{3, -1}, []int{2}, nil, []float32{8, 0.5}, []int{2}},
		{"log", []float32{1, 0}, []int{2}, nil, []float32{0, float32(math.Log(1e-45))}, []int{2}},
		{"threshold", []float32{-1, 3}, []int{2}, []any{"alpha", f16(1)}, []float32{1, 3}, []int{2}},
	} {
		t.Run(c.op, func(t *testing.T) {
			b := newBuilder()
			shape := make([]int64, len(c.shape))
			for i, n := range c.shape {
				shape[i] = int64(n)
			}
			b.input("x", mil.TensorOf(mil.Float16, shape...))
			y := b.one(c.op, append([]any{"x", "x"}, c.args...)...)
			got := b.run(t, interp.Exact, map[string]*interp.Tensor{"x": interp.F16(c.x, c.shape...)}, y)[y]
			require.Equal(t, c.dims, got.Shape)
			require.InDeltaSlice(t, c.want, got.Floats, 1e-6)
		})
	}
}

// hand: every mode of scatter, an index twice and one from the end.
func TestScatterModes(t *testing.T) {
	for mode, want := range map[string][]float32{
		"add": {10, 23, 33}, "sub": {10, 17, 27}, "mul": {10, 40, 90}, "div": {10, 10, 10}, "max": {10, 20, 30}, "min": {10, 1, 3}, "update": {10, 2, 3},
	} {
		b := newBuilder()
		b.input("data", mil.TensorOf(mil.Float16, 3))
		y := b.one("scatter", "data", "data", "indices", b.constant(ints(1, -2, 2)), "updates", b.constant(tensor([]float32{1, 2, 3}, 3)), "axis", mil.Scalar(int32(0)), "mode", mil.Scalar(mode))
		got := b.run(t, interp.Exact, map[string]*interp.Tensor{"data": interp.F16([]float32{10, 20, 30}, 3)}, y)[y]
		require.Equal(t, want, got.Floats, mode)
	}
}

// hand: 0.6/0.25 = 2.4 rounds to 2, and back; a zero point per channel.
func TestQuantizeAndBack(t *testing.T) {
	b := newBuilder()
	b.input("x", mil.TensorOf(mil.Float16, 2, 2))
	scale, zero := b.constant(tensor([]float32{0.25, 0.5}, 2)), b.constant(mil.Vector(int8(0), int8(3)))
	q := b.one("quantize", "input", "x", "scale", scale, "zero_point", zero, "axis", mil.Scalar(int32(0)), "output_dtype", mil.Scalar("int8"))
	y := b.one("dequantize", "input", q, "scale", scale, "zero_point", zero, "axis", mil.Scalar(int32(0)))
	got := b.run(t, interp.FP16, map[string]*interp.Tensor{"x": interp.F16([]float32{0.6, -99, 1, 99}, 2, 2)}, q, y)
	require.Equal(t, []int32{2, -128, 5, 127}, got[q].Ints)
	require.Equal(t, []float32{0.5, -32, 1, 62}, got[y].Floats)
}

// hand: values of a sparse constant, scaled by the block that each lies in.
func TestSparseBlockwiseScale(t *testing.T) {
	b := newBuilder()
	b.input("x", mil.TensorOf(mil.Float16, 2, 2))
	mask := mil.TensorValue(mil.TensorOf(mil.UInt1, 2, 4), mil.Pack(mil.UInt1, []int64{1, 0, 1, 0, 0, 1, 0, 1}))
	out := b.op("constexpr_sparse_blockwise_shift_scale", 2, "data_mask", mask, "nonzero_data", mil.Vector(int8(1), int8(2), int8(3), int8(4)),
		"scale", tensor([]float32{1, 10, 100, 1000}, 2, 2), "offset", mil.TensorValue(mil.TensorOf(mil.Int8, 2, 2), []byte{0, 1, 0, 1}))
	w := b.one("constexpr_sparse_to_dense", "nonzero_data", out[1], "mask", out[0])
	y := b.one("matmul", "x", "x", "y", w)
	got := b.run(t, interp.FP16, map[string]*interp.Tensor{"x": interp.F16([]float32{1, 0, 0, 1}, 2, 2)}, y)[y]
	require.Equal(t, []float32{1, 0, 10, 0, 0, 300, 0, 3000}, got.Floats)
}

// hand: only the rows that are asked for are decoded; an index beyond the table is an error.
func TestGatherFromAPalette(t *testing.T) {
	b := newBuilder()
	b.input("i", mil.TensorOf(mil.Int32, 3))
	w := b.one("constexpr_lut_to_dense", "indices", mil.TensorValue(mil.TensorOf(mil.UInt4, 4, 2), mil.Pack(mil.UInt4, []int64{0, 1, 2, 3, 4, 5, 6, 7})),
		"lut", tensor(upTo(16), 1, 1, 16, 1))
	y := b.one("gather", "x", w, "indices", "i", "axis", mil.Scalar(int32(0)))
	m, err := interp.New(b.program(y), interp.Options{Precision: interp.FP16})
	require.NoError(t, err)
	out, err := m.Run(context.Background(), "main", map[string]*interp.Tensor{"i": interp.I32([]int32{3, 0, -2}, 3)}, interp.Call{})
	require.NoError(t, err)
	require.Equal(t, []float32{6, 7, 0, 1, 4, 5}, out[y].Floats)
	_, err = m.Run(context.Background(), "main", map[string]*interp.Tensor{"i": interp.I32([]int32{3, 4, 0}, 3)}, interp.Call{})
	require.ErrorIs(t, err, interp.ErrValue)
	require.ErrorContains(t, err, "(gather)/indices: 4, want -4 to 3")
}

// hand: dimensions that are known only at run time are checked there.
func TestShapesOfRunTime(t *testing.T) {
	b := newBuilder()
	b.input("x", mil.TensorOf(mil.Float16, mil.Unknown, 3))
	b.input("y", mil.TensorOf(mil.Float16, mil.Unknown, 3))
	sum := b.one("add", "x", "x", "y", "y")
	shape := b.one("shape", "x", "x")
	flat := b.one("reshape", "x", sum, "shape", ints(-1))
	p := b.program(sum, shape, flat)
	run := func(n, m int) (map[string]*interp.Tensor, error) {
		in := map[string]*interp.Tensor{"x": interp.NewTensor(mil.Float16, n, 3), "y": interp.NewTensor(mil.Float16, m, 3)}
		return interp.Run(context.Background(), p, "main", in, interp.Options{})
	}
	out, err := run(5, 1)
	require.NoError(t, err)
	require.Equal(t, []int32{5, 3}, out[shape].Ints)
	require.Equal(t, []int{15}, out[flat].Shape)
	_, err = run(5, 2)
	require.ErrorIs(t, err, mil.ErrShape)
	require.ErrorContains(t, err, "main/"+sum+" (add)")
}

// hand: the one query sees two keys; a mask of bools keeps where it is true, and a row with nothing to see has no value.
func TestAttentionMasks(t *testing.T) {
	b := newBuilder()
	for _, name := range []string{"q", "k", "v"} {
		b.input(name, mil.TensorOf(mil.Float16, 1, 2, 4))
	}
	mask := b.constant(&mil.Value{Type: mil.TensorOf(mil.Bool, 2, 2), Content: mil.Raw("\x01\x00\x00\x00")})
	y := b.one("scaled_dot_product_attention", "query", "q", "key", "k", "value", "v", "attn_mask", mask)
	in := map[string]*interp.Tensor{"q": interp.F16(upTo(8), 1, 2, 4), "k": interp.F16(upTo(8), 1, 2, 4), "v": interp.F16(upTo(8), 1, 2, 4)}
	got := b.run(t, interp.FP16, in, y)[y].Floats
	require.Equal(t, upTo(4), got[:4])
	for _, x := range got[4:] {
		require.True(t, math.IsNaN(float64(x)))
	}
}
