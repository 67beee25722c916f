package mil_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/coreml/mil"
	"anelab/coreml/miltext"
	"anelab/internal/shareddata"
)

// TestShapesOfResults declares what each op yields. Checked as it stands, the declaration must pass; with one dimension more or larger
// it must not.
func TestShapesOfResults(t *testing.T) { // hand
	const (
		x = "tensor<fp16, [2, 3, 5, 7]> x"
		i = "tensor<int32, [4, 6]> i"
	)
	for _, c := range []struct{ name, inputs, op string }{
		{"unary", x, "tensor<fp16, [2, 3, 5, 7]> y = exp(x = x);"},
		{"broadcast", x + ", tensor<fp16, [5, 1]> z", "tensor<fp16, [2, 3, 5, 7]> y = add(x = z, y = x);"},
		{"broadcast of both", "tensor<fp16, [4, 1, 3]> x, tensor<fp16, [2, 1]> z", "tensor<fp16, [4, 2, 3]> y = mul(x = x, y = z);"},
		{"comparison", x, "tensor<bool, [2, 3, 5, 7]> y = greater(x = x, y = fp16(0x1p+0));"},
		{"select", x + ", tensor<bool, [7]> c", "tensor<fp16, [2, 3, 5, 7]> y = select(cond = c, a = x, b = fp16(0x1p+0));"},
		{"cast", x, "tensor<int32, [2, 3, 5, 7]> y = cast(x = x, dtype = string(\"int32\"));"},
		{"reduce, kept", x, "tensor<fp16, [2, 1, 5, 1]> y = reduce_sum(x = x, axes = tensor<int32, [2]>([1, -1]), keep_dims = bool(true));"},
		{"reduce, dropped", x, "tensor<fp16, [3, 7]> y = reduce_max(x = x, axes = tensor<int32, [2]>([0, 2]));"},
		{"argmax", x, "tensor<uint16, [2, 3, 5]> y = reduce_argmax(x = x, output_dtype = string(\"uint16\"));"},
		{"top k", x, "tensor<fp16, [2, 3, 4, 7]> y, tensor<int32, [2, 3, 4, 7]> z = topk(x = x, k = int32(4), axis = int32(-2));"},
		{"top k without indices", x, "tensor<fp16, [2, 3, 5, 1]> y = topk(x = x, return_indices = bool(false));"},
		{"convolution, valid", x + ", tensor<fp16, [11, 3, 2, 3]> w", "tensor<fp16, [2, 11, 2, 5]> y = conv(x = x, weight = w, strides = tensor<int32, [2]>([2, 1]));"},
		{"convolution, custom", x + ", tensor<fp16, [9, 1, 2, 3]> w", "tensor<fp16, [2, 9, 7, 4]> y = conv(x = x, weight = w, groups = int32(3), pad_type = string(\"custom\"), pad = tensor<int32, [4]>([1, 2, 0, 1]), dilations = tensor<int32, [2]>([1, 2]));"},
		{"convolution, same", x + ", tensor<fp16, [9, 3, 2, 3]> w", "tensor<fp16, [2, 9, 3, 3]> y = conv(x = x, weight = w, pad_type = string(\"same\"), strides = tensor<int32, [2]>([2, 3]));"},
		{"transposed convolution", x + ", tensor<fp16, [3, 4, 2, 3]> w", "tensor<fp16, [2, 4, 10, 9]> y = conv_transpose(x = x, weight = w, strides = tensor<int32, [2]>([2, 1]));"},
		{"pool", x, "tensor<fp16, [2, 3, 2, 4]> y = max_pool(x = x, kernel_sizes = tensor<int32, [2]>([3, 2]), strides = tensor<int32, [2]>([2, 2]), pad_type = string(\"valid\"), ceil_mode = bool(true));"},
		{"linear", x + ", tensor<fp16, [11, 7]> w", "tensor<fp16, [2, 3, 5, 11]> y = linear(x = x, weight = w);"},
		{"matrix product", x + ", tensor<fp16, [3, 11, 7]> w", "tensor<fp16, [2, 3, 5, 11]> y = matmul(x = x, y = w, transpose_y = bool(true));"},
		{"row and matrix", "tensor<fp16, [7]> v, tensor<fp16, [7, 11]> w", "tensor<fp16, [11]> y = matmul(x = v, y = w);"},
		{"einsum", x + ", tensor<fp16, [7, 3, 4]> z", "tensor<fp16, [2, 3, 5, 4]> y = einsum(values = (x, z), equation = string(\"nchw,wcu->nchu\"));"},
		{"attention", x + ", tensor<fp16, [2, 3, 11, 7]> k, tensor<fp16, [2, 3, 11, 13]> v", "tensor<fp16, [2, 3, 5, 13]> y = scaled_dot_product_attention(query = x, key = k, value = v);"},
		{"norm", x, "tensor<fp16, [2, 3, 5, 7]> y = layer_norm(x = x, axes = tensor<int32, [1]>([2]), gamma = tensor<fp16, [5]>([0x1p+0, 0x1p+0, 0x1p+0, 0x1p+0, 0x1p+0]));"},
		{"reshape", x, "tensor<fp16, [2, 15, 7]> y = reshape(x = x, shape = tensor<int32, [3]>([0, -1, 7]));"},
		{"transpose with negative axes", x, "tensor<fp16, [3, 2, 7, 5]> y = transpose(x = x, perm = tensor<int32, [4]>([1, 0, -1, -2]));"},
		{"squeeze leaves other axes", "tensor<fp16, [1, 3, 1]> x", "tensor<fp16, [1, 3]> y = squeeze(x = x, axes = tensor<int32, [2]>([1, 2]));"},
		{"expand", i, "tensor<int32, [1, 4, 6, 1]> y = expand_dims(x = i, axes = tensor<int32, [2]>([0, -1]));"},
		{"concat", i + ", tensor<int32, [4, 2]> j", "tensor<int32, [4, 8]> y = concat(values = (i, j), axis = int32(-1));"},
		{"stack", i + ", tensor<int32, [4, 6]> j", "tensor<int32, [4, 2, 6]> y = stack(values = (i, j), axis = int32(1));"},
		{"split in equal parts", i, "tensor<int32, [4, 2]> y, tensor<int32, [4, 2]> z, tensor<int32, [4, 2]> u = split(x = i, num_splits = int32(3), axis = int32(1));"},
		{"tile", i, "tensor<int32, [8, 18]> y = tile(x = i, reps = tensor<int32, [2]>([2, 3]));"},
		{"pad of the last dimensions", x, "tensor<fp16, [2, 3, 8, 11]> y = pad(x = x, pad = tensor<int32, [4]>([1, 2, 0, 4]), mode = string(\"constant\"), constant_val = fp16(0x0p+0));"},
		{"one hot", i, "tensor<int32, [4, 6, 9]> y = one_hot(indices = i, one_hot_vector_size = int32(9));"},
		{"depth to space", "tensor<fp16, [1, 12, 5, 7]> x", "tensor<fp16, [1, 3, 10, 14]> y = depth_to_space(x = x, block_size = int32(2));"},
		{"slice with masks and stride", x, "tensor<fp16, [2, 2, 3]> y = slice_by_index(x = x, begin = tensor<int32, [4]>([0, 1, 3, -2]), end = tensor<int32, [4]>([0, 3, 0, 0]), stride = tensor<int32, [4]>([1, 1, 1, -2]), end_mask = tensor<bool, [4]>([true, false, false, true]), squeeze_mask = tensor<bool, [4]>([false, false, true, false]));"},
		{"slice by size", x, "tensor<fp16, [1, 2, 5, 4]> y = slice_by_size(x = x, begin = tensor<int32, [4]>([0, 1, 0, 3]), size = tensor<int32, [4]>([1, 2, -1, 4]));"},
		{"windows", x, "tensor<fp16, [2, 3, 2, 4, 7]> y = sliding_windows(x = x, axis = int32(2), size = int32(4));"},
		{"gather", x + ", " + i, "tensor<fp16, [2, 4, 6, 5, 7]> y = gather(x = x, indices = i, axis = int32(1));"},
		{"gather of one", x, "tensor<fp16, [2, 3, 5]> y = gather(x = x, indices = int32(3), axis = int32(-1));"},
		{"gather along", i + ", tensor<int32, [4, 9]> j", "tensor<int32, [4, 9]> y = gather_along_axis(x = i, indices = j, axis = int32(1));"},
		{"gather nd", x + ", tensor<int32, [11, 2]> j", "tensor<fp16, [11, 5, 7]> y = gather_nd(x = x, indices = j);"},
		{"scatter", i + ", tensor<int32, [2]> j, tensor<int32, [2, 6]> u", "tensor<int32, [4, 6]> y = scatter(data = i, indices = j, updates = u, mode = string(\"update\"));"},
		{"recurrent", "tensor<fp32, [9, 2, 5]> x, tensor<fp32, [2, 3]> h, tensor<fp32, [12, 5]> w, tensor<fp32, [12, 3]> v", "tensor<fp32, [9, 2, 3]> y, tensor<fp32, [2, 3]> z, tensor<fp32, [2, 3]> u = lstm(x = x, initial_h = h, initial_c = h, weight_ih = tensor<fp32, [1, 1]>([[0x1p+0]]), weight_hh = tensor<fp32, [1, 1]>([[0x1p+0]]), output_sequence = bool(true));"},
		{"resize", x, "tensor<fp16, [2, 3, 11, 13]> y = resize_bilinear(x = x, target_size_height = int32(11), target_size_width = int32(13));"},
		{"upsample", x, "tensor<fp16, [2, 3, 10, 17]> y = upsample_bilinear(x = x, scale_factor_height = int32(2), scale_factor_width = fp32(0x1.4p+1));"},
		{"state", "state<tensor<fp16, [2, 3]>> s", "tensor<fp16, [2, 3]> y = read_state(input = s);"},
		{"vectors of a LUT", "", "tensor<fp16, [4, 3]> y = constexpr_lut_to_dense(indices = tensor<uint1, [2, 3]>([[1, 0, 1], [0, 0, 1]]), lut = tensor<fp16, [1, 1, 2, 2]>([[[[0x1p+0, 0x1p+1], [0x1p+2, 0x1p+3]]]]), vector_axis = int32(0));"},
		{"quantize", x, "tensor<int8, [2, 3, 5, 7]> y = quantize(input = x, output_dtype = string(\"int8\"), scale = fp16(0x1p-4));"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := parse(t, "ios18", c.inputs, c.op, "y")
			require.NoError(t, mil.Check(p))
			op := p.Functions[0].Body.Ops[0]
			right := op.Outputs[0].Type.Shape
			for d := range right {
				wrong := append([]int64{}, right...)
				wrong[d]++
				op.Outputs[0].Type.Shape = wrong
				require.ErrorIs(t, mil.Check(p), mil.ErrDeclared, "dimension %d", d)
			}
			op.Outputs[0].Type.Shape = append([]int64{1}, right...)
			require.ErrorIs(t, mil.Check(p), mil.ErrDeclared)
		})
	}
}

func TestOpenDimensionsAreCarriedAlong(t *testing.T) { // hand
	p := parse(t, "ios18", "tensor<fp16, [1, ?, 16]> x, tensor<int32, [3]> s", `
		tensor<fp16, [1, ?, ?]> a = matmul(x = x, y = x, transpose_y = bool(true));
		tensor<fp16, [1, ?, 32]> b = concat(values = (x, x), axis = int32(2));
		tensor<fp16, [1, ?]> c = reshape(x = x, shape = tensor<int32, [2]>([1, -1]));
		tensor<fp16, [?, ?, ?]> d = reshape(x = x, shape = s);
		tensor<int32, [3]> e = shape(x = x);
		tensor<fp16, [1, ?, 16]> y = slice_by_index(x = x, begin = s, end = s, begin_mask = tensor<bool, [3]>([true, false, true]), end_mask = tensor<bool, [3]>([true, false, true]));`, "y")
	require.NoError(t, mil.Check(p))
	op := p.Functions[0].Body.Ops[5]
	op.Outputs[0].Type.Shape[2] = 15
	require.ErrorIs(t, mil.Check(p), mil.ErrDeclared)
}

func TestSpansOfSlices(t *testing.T) { // hand
	shape := []int64{2, 3, 7}
	spans, err := mil.Slice{Begin: []int64{-1, 0, 6}, End: []int64{0, 9, -8}, Stride: []int64{1, 2, -3}, SqueezeMask: []int64{1, 0, 0}, EndMask: []int64{0, 0, 1}}.Spans(shape)
	require.NoError(t, err)
	require.Equal(t, []mil.Span{{Begin: 1, Step: 1, Count: 1, Squeeze: true}, {Begin: 0, Step: 2, Count: 2}, {Begin: 6, Step: -3, Count: 3}}, spans)
	spans, err = mil.Slice{Begin: []int64{1, 2, -3}, End: []int64{1, 1, -1}}.Spans(shape)
	require.NoError(t, err)
	require.Equal(t, []mil.Span{{Begin: 1, Step: 1}, {Begin: 2, Step: 1}, {Begin: 4, Step: 1, Count: 2}}, spans)
	for _, bad := range []mil.Slice{
		{Begin: []int64{0, 0}, End: []int64{1, 1, 1}},
		{Begin: []int64{0, 0, 0}, End: []int64{1, 1, 1}, Stride: []int64{1, 0, 1}},
		{Begin: []int64{2, 0, 0}, End: []int64{1, 1, 1}, SqueezeMask: []int64{1, 0, 0}},
	} {
		_, err := bad.Spans(shape)
		require.Error(t, err)
	}
}

func TestOpTableIsWhole(t *testing.T) { // invariant
	types := mil.OpTypes()
	require.Greater(t, len(types), 150)
	for _, name := range types {
		sig, err := mil.Lookup(name, mil.CoreML9)
		require.NoError(t, err)
		seen := map[string]bool{}
		for _, p := range sig.Params {
			require.False(t, seen[p.Name], "%s: %s twice", name, p.Name)
			seen[p.Name] = true
		}
	}
	_, err := mil.Lookup("slice_update", mil.CoreML7)
	require.ErrorIs(t, err, mil.ErrOpTooNew)
	old, err := mil.Lookup("constexpr_lut_to_dense", mil.CoreML7)
	require.NoError(t, err)
	require.NotNil(t, old.Param("shape"), "the form of iOS 16")
}

// known is the scope of a whole block, for asking about one op at a time.
type known map[string]*mil.Op

func (k known) TypeOf(name string) (mil.Type, bool) {
	for _, out := range k[name].Outputs {
		if out.Name == name {
			return out.Type, true
		}
	}
	return mil.Type{}, false
}

func (k known) Constant(name string) *mil.Value {
	if op := k[name]; op.Type == "const" {
		return op.Attribute("val")
	}
	return nil
}

func (k known) Fixed(name string) bool { return k[name].Type == "const" || k[name].IsConstexpr() }

// TestInferenceAgreesWithCompilers infers every op of every text of the conformance data, and wants the declared types exactly:
// every dimension that the compiler knew.
func TestInferenceAgreesWithCompilers(t *testing.T) { // oracle: coremltools 9.0 and Apple's compiler declared the types
	ops, left := 0, map[string]int{}
	for _, pattern := range []string{"coreml/miltext/*/*.mil", "coreml/miltext/pairs/*/model.mil"} {
		for _, file := range shareddata.Cases(t, pattern) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			p, _, err := miltext.Parse(file, string(text))
			require.NoError(t, err)
			require.NoError(t, mil.Check(p), file)
			for _, f := range p.Functions {
				scope := known(f.Body.Producers())
				for _, in := range f.Inputs {
					scope[in.Name] = &mil.Op{Type: "input", Outputs: []mil.Variable{in.Variable}}
				}
				for _, op := range f.Body.Ops {
					types, err := mil.Infer(op, f.Opset, scope)
					require.NoError(t, err)
					for i, out := range op.Outputs {
						ops++
						if types == nil || !types[i].Equal(out.Type) {
							left[op.Type]++
						}
					}
				}
			}
		}
	}
	t.Logf("%d results, of which these are not inferred in full: %v", ops, left)
	delete(left, "tensor_to_tensor_buffer") // strides are the device's choice
	delete(left, "range_1d")                // the length depends on numbers
	require.Empty(t, left)
}
