package mil_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/coreml/mil"
	"anelab/coreml/miltext"
)

// parse makes a program of one function from its inputs, ops and outputs.
func parse(t testing.TB, opset, inputs, ops, outputs string) *mil.Program {
	t.Helper()
	p, _, err := miltext.Parse("test", "program(1.3) { func main<"+opset+">("+inputs+") {"+ops+"} -> ("+outputs+"); }")
	require.NoError(t, err)
	return p
}

const (
	x23     = "tensor<fp16, [2, 3]> x"
	relu    = "tensor<fp16, [2, 3]> y = relu(x = x);"
	kv      = "state<tensor<fp16, [2, 3]>> kv"
	w45     = "tensor<fp16, [4, 5]> w = const()[val = tensor<fp16, [4, 5]>(BLOBFILE(path = string(\"@model_path/w\"), offset = uint64(64)))];"
	sixteen = "[0x1p+0, 0x1p+0, 0x1p+0, 0x1p+0, 0x1p+0, 0x1p+0, 0x1p+0, 0x1p+0, 0x1p+0, 0x1p+0, 0x1p+0, 0x1p+0, 0x1p+0, 0x1p+0, 0x1p+0, 0x1p+0]"
)

// TestFaults plants one fault per case. Each must be found, as what it is, where it is.
func TestFaults(t *testing.T) { // hand
	for _, c := range []struct {
		name, opset, inputs, ops, outputs string
		rule                              error
		where, text                       string
	}{
		{"unknown op", "ios18", x23, "tensor<fp16, [2, 3]> y = rellu(x = x);", "y", mil.ErrUnknownOp, "main/y (rellu)", "did you mean relu?"},
		{"op too new", "ios17", x23 + ", " + kv, "tensor<fp16, [2, 3]> y = read_state(input = kv);", "y", mil.ErrOpTooNew, "main/y (read_state)", "CoreML8 or newer"},
		{"operand too new", "ios16", x23, "tensor<int32, [2, 1]> y = reduce_argmax(x = x, keep_dims = bool(true), output_dtype = string(\"int32\"));", "y", mil.ErrOpTooNew, "main/y (reduce_argmax)/output_dtype", "CoreML7"},
		{"no such operand", "ios18", x23, "tensor<fp16, [2, 3]> y = gelu(x = x, modes = string(\"EXACT\"));", "y", mil.ErrOperand, "main/y (gelu)/modes", "did you mean mode?"},
		{"missing operand", "ios18", x23, "tensor<fp16, [2, 3]> y = add(x = x);", "y", mil.ErrMissing, "main/y (add)/y", ""},
		{"several values for one", "ios18", x23, "tensor<fp16, [2, 3]> y = relu(x = (x, x));", "y", mil.ErrOperand, "main/y (relu)/x", "2 values"},
		{"not constant", "ios18", x23 + ", tensor<int32, [2]> p", "tensor<fp16, [3, 2]> y = transpose(x = x, perm = p);", "y", mil.ErrNotConst, "main/y (transpose)/perm", "p"},
		{"undefined name", "ios18", x23, "tensor<fp16, [2, 3]> y = relu(x = xx);", "y", mil.ErrUndefined, "main/y (relu)/x", "did you mean x?"},
		{"use before definition", "ios18", x23, "tensor<fp16, [2, 3]> y = relu(x = z); tensor<fp16, [2, 3]> z = relu(x = x);", "y", mil.ErrOrder, "main/y (relu)/x", "op 1"},
		{"circle", "ios18", x23, "tensor<fp16, [2, 3]> y = relu(x = z); tensor<fp16, [2, 3]> a = relu(x = y); tensor<fp16, [2, 3]> z = relu(x = a);", "y", mil.ErrCycle, "main/y (relu)/x", "z"},
		{"op of itself", "ios18", x23, "tensor<fp16, [2, 3]> y = add(x = x, y = y);", "y", mil.ErrCycle, "main/y (add)/y", ""},
		{"defined twice", "ios18", x23, relu + relu, "y", mil.ErrDefinedTwice, "main/y (relu)/y", ""},
		{"input defined again", "ios18", x23, "tensor<fp16, [2, 3]> x = relu(x = x);", "x", mil.ErrDefinedTwice, "main/x (relu)/x", ""},
		{"element type", "ios18", "tensor<int32, [2, 3]> x", "tensor<int32, [2, 3]> y = relu(x = x);", "y", mil.ErrType, "main/y (relu)/x", "fp16 or fp32"},
		{"two element types", "ios18", x23 + ", tensor<fp32, [2, 3]> z", "tensor<fp16, [2, 3]> y = add(x = x, y = z);", "y", mil.ErrType, "main/y (add)/y", "want fp16, as x has"},
		{"state where a tensor must be", "ios18", kv, "tensor<fp16, [2, 3]> y = relu(x = kv);", "y", mil.ErrType, "main/y (relu)/x", "a tensor"},
		{"shapes", "ios18", x23 + ", tensor<fp16, [4, 3]> z", "tensor<fp16, [2, 3]> y = add(x = x, y = z);", "y", mil.ErrShape, "main/y (add)/y", "stretches to [2, 3]"},
		{"declared element type", "ios18", x23, "tensor<fp32, [2, 3]> y = relu(x = x);", "y", mil.ErrDeclared, "main/y (relu)/y", "want tensor<fp16, [2, 3]>"},
		{"declared shape", "ios18", x23, "tensor<fp16, [2, 4]> y = relu(x = x);", "y", mil.ErrDeclared, "main/y (relu)/y", ""},
		{"number of outputs", "ios18", x23, "tensor<fp16, [2, 3]> y, tensor<fp16, [2, 3]> z = relu(x = x);", "y", mil.ErrDeclared, "main/y (relu)", "2 outputs, want 1"},
		{"output nobody defines", "ios18", x23, relu, "z", mil.ErrOutput, "main/z", ""},
		{"text as a number", "ios18", x23, "tensor<fp16, [2, 3]> y = gelu(x = x, mode = string(\"TANH\"));", "y", mil.ErrValue, "main/y (gelu)/mode", "TANH_APPROXIMATION"},
		{"axis", "ios18", x23, "tensor<fp16, [2, 3]> y = softmax(x = x, axis = int32(2));", "y", mil.ErrShape, "main/y (softmax)/axis", "2 dimensions"},
		{"bad name", "ios18", "tensor<fp16, [2, 3]> a.b", "", "a.b", mil.ErrName, "main/a.b", ""},
		{"written state of another shape", "ios18", x23 + ", state<tensor<fp16, [2, 4]>> kv", "write_state(input = kv, data = x);", "", mil.ErrType, "main/write_state/data", "tensor<fp16, [2, 4]>"},
		{"convolution channels", "ios18", "tensor<fp16, [1, 6, 2, 2]> x, tensor<fp16, [4, 5, 1, 1]> w", "tensor<fp16, [1, 4, 2, 2]> y = conv(x = x, weight = w);", "y", mil.ErrShape, "main/y (conv)/weight", "6 channels"},
		{"window larger than the image", "ios18", "tensor<fp16, [1, 5, 2, 2]> x, tensor<fp16, [4, 5, 3, 1]> w", "tensor<fp16, [1, 4, 1, 2]> y = conv(x = x, weight = w);", "y", mil.ErrShape, "main/y (conv)/x", "at least 3"},
		{"matrices", "ios18", x23, w45 + "tensor<fp16, [2, 5]> y = matmul(x = x, y = w);", "y", mil.ErrShape, "main/y (matmul)/y", ""},
		{"bias", "ios18", "tensor<fp16, [2, 5]> x, tensor<fp16, [3]> b", w45 + "tensor<fp16, [2, 4]> y = linear(x = x, weight = w, bias = b);", "y", mil.ErrShape, "main/y (linear)/bias", "want [4]"},
		{"parts of a split", "ios18", x23, "tensor<fp16, [2, 1]> y, tensor<fp16, [2, 1]> z = split(x = x, axis = int32(1), split_sizes = tensor<int32, [2]>([1, 1]));", "y", mil.ErrShape, "main/y (split)/split_sizes", "a sum of 3"},
		{"elements of a reshape", "ios18", x23, "tensor<fp16, [4, 2]> y = reshape(x = x, shape = tensor<int32, [2]>([4, 2]));", "y", mil.ErrShape, "main/y (reshape)/x", ""},
		{"concat", "ios18", x23 + ", tensor<fp16, [3, 3]> z", "tensor<fp16, [2, 6]> y = concat(values = (x, z), axis = int32(1));", "y", mil.ErrShape, "main/y (concat)/values", "except in dimension 1"},
		{"entries of a LUT", "ios18", "", "tensor<fp16, [2, 4]> y = constexpr_lut_to_dense(indices = tensor<uint4, [2, 4]>([[1, 2, 3, 4], [5, 6, 7, 8]]), lut = tensor<fp16, [1, 1, 2, 1]>([[[[0x1p+0], [0x1p+0]]]]));", "y", mil.ErrShape, "main/y (constexpr_lut_to_dense)/lut", "16 entries"},
		{"groups of a LUT", "ios18", "", "tensor<fp16, [2, 4]> y = constexpr_lut_to_dense(indices = tensor<uint1, [2, 4]>([[1, 0, 1, 0], [1, 1, 1, 0]]), lut = tensor<fp16, [1, 3, 2, 1]>([[[[0x1p+0], [0x1p+0]], [[0x1p+0], [0x1p+0]], [[0x1p+0], [0x1p+0]]]]));", "y", mil.ErrShape, "main/y (constexpr_lut_to_dense)/lut", "divides 4"},
		{"blocks of a scale", "ios18", "", "tensor<fp16, [2, 4]> y = constexpr_blockwise_shift_scale(data = tensor<int8, [2, 4]>([[1, 2, 3, 4], [5, 6, 7, 8]]), scale = tensor<fp16, [2, 3]>([[0x1p+0, 0x1p+0, 0x1p+0], [0x1p+0, 0x1p+0, 0x1p+0]]));", "y", mil.ErrShape, "main/y (constexpr_blockwise_shift_scale)/scale", "divides 4"},
		{"bytes of packed indices", "ios16", "", "tensor<fp16, [3, 5]> y = constexpr_lut_to_dense()[indices = tensor<uint8, [7]>([1, 2, 3, 4, 5, 6, 7]), lut = tensor<fp16, [16]>(" + sixteen + "), shape = tensor<uint32, [2]>([3, 5])];", "y", mil.ErrShape, "main/y (constexpr_lut_to_dense)/indices", "[8] bytes"},
		{"update of a slice", "ios18", x23 + ", tensor<fp16, [2, 2]> u", "tensor<fp16, [2, 3]> y = slice_update(x = x, update = u, begin = tensor<int32, [2]>([0, 0]), end = tensor<int32, [2]>([2, 3]));", "y", mil.ErrShape, "main/y (slice_update)/update", "[2, 3]"},
		{"masks of attention", "ios18", "tensor<fp16, [1, 2, 5, 8]> q, tensor<fp16, [1, 2, 7, 8]> k, tensor<fp16, [1, 1, 5, 9]> m", "tensor<fp16, [1, 2, 5, 8]> y = scaled_dot_product_attention(query = q, key = k, value = k, attn_mask = m);", "y", mil.ErrShape, "main/y (scaled_dot_product_attention)/attn_mask", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := mil.Check(parse(t, c.opset, c.inputs, c.ops, c.outputs))
			require.ErrorIs(t, err, c.rule)
			require.ErrorContains(t, err, c.text)
			var f *mil.Fault
			require.True(t, errors.As(err, &f))
			require.Equal(t, c.where, f.Where())
		})
	}
}

func TestFaultsOfWholePrograms(t *testing.T) { // hand
	good := func() *mil.Program { return parse(t, "ios18", x23, relu, "y") }
	for _, c := range []struct {
		name  string
		spoil func(p *mil.Program)
		rule  error
	}{
		{"specification version", func(p *mil.Program) { p.SpecVersion = 5 }, mil.ErrSpecVersion},
		{"opset newer than the specification", func(p *mil.Program) { p.SpecVersion = 8 }, mil.ErrOpsetTooNew},
		{"no function", func(p *mil.Program) { p.Functions = nil }, mil.ErrStructure},
		{"function twice", func(p *mil.Program) { p.Functions = append(p.Functions, p.Functions[0]) }, mil.ErrDefinedTwice},
		{"no opset", func(p *mil.Program) { p.Functions[0].Opset = 3 }, mil.ErrStructure},
		{"no block", func(p *mil.Program) { p.Functions[0].Body = nil }, mil.ErrStructure},
		{"name of a function", func(p *mil.Program) { p.Functions[0].Name = "1st" }, mil.ErrName},
		{"input without a type", func(p *mil.Program) { p.Functions[0].Inputs[0].Type = mil.Type{} }, mil.ErrStructure},
		{"input of an unknown type", func(p *mil.Program) { p.Functions[0].Inputs[0].Type = mil.TensorOf(99, 2) }, mil.ErrType},
		{"negative dimension", func(p *mil.Program) { p.Functions[0].Inputs[0].Type = mil.TensorOf(mil.Float16, -7) }, mil.ErrShape},
		{"constant without contents", func(p *mil.Program) { addConst(p, &mil.Value{Type: mil.TensorOf(mil.Int32)}) }, mil.ErrValue},
		{"constant with too few bytes", func(p *mil.Program) {
			addConst(p, &mil.Value{Type: mil.TensorOf(mil.Int32, 2), Content: mil.Raw("abcd")})
		}, mil.ErrValue},
		{"constant with too few strings", func(p *mil.Program) {
			addConst(p, &mil.Value{Type: mil.TensorOf(mil.String, 2), Content: mil.Strings{"a"}})
		}, mil.ErrValue},
		{"numbers for strings", func(p *mil.Program) { addConst(p, &mil.Value{Type: mil.TensorOf(mil.String), Content: mil.Raw("a")}) }, mil.ErrValue},
		{"constant of open shape", func(p *mil.Program) {
			addConst(p, &mil.Value{Type: mil.TensorOf(mil.Int8, mil.Unknown), Content: mil.Raw("a")})
		}, mil.ErrValue},
		{"list of another length", func(p *mil.Program) {
			addConst(p, &mil.Value{Type: mil.ListOf(mil.TensorOf(mil.Int32), 2), Content: mil.Items{mil.Scalar(int32(1))}})
		}, mil.ErrValue},
		{"tuple with another member", func(p *mil.Program) {
			addConst(p, &mil.Value{Type: mil.TupleOf(mil.TensorOf(mil.Int32)), Content: mil.Items{mil.Scalar("a")}})
		}, mil.ErrValue},
		{"endless value", func(p *mil.Program) {
			v := &mil.Value{Type: mil.ListOf(mil.TensorOf(mil.Int32), 1)}
			v.Content = mil.Items{v}
			addConst(p, v)
		}, mil.ErrValue},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := good()
			require.NoError(t, mil.Check(p))
			c.spoil(p)
			require.ErrorIs(t, mil.Check(p), c.rule)
		})
	}
}

func addConst(p *mil.Program, v *mil.Value) {
	b := p.Functions[0].Body
	b.Ops = append(b.Ops, &mil.Op{Type: "const", Outputs: []mil.Variable{{Name: "c", Type: v.Type}}, Attributes: []mil.Attribute{{Name: "val", Value: v}}})
}

func TestCHK09EveryInputMustBeDescribed(t *testing.T) { // hand
	p := parse(t, "ios18", x23+", "+kv, "write_state(input = kv, data = x);"+relu, "y")
	array := func(name string, kind mil.FeatureKind) mil.Feature {
		return mil.Feature{Name: name, Kind: kind, Array: &mil.ArrayFeature{DType: mil.Float16, Shape: []int64{2, 3}}}
	}
	full := func() *mil.Description {
		return &mil.Description{Interface: mil.Interface{Inputs: []mil.Feature{array("x", mil.ArrayPort)}, Outputs: []mil.Feature{array("y", mil.ArrayPort)}, States: []mil.Feature{array("kv", mil.StatePort)}}}
	}
	require.NoError(t, mil.CheckDescription(p, full()))
	for name, c := range map[string]struct {
		spoil func(d *mil.Description)
		text  string
	}{
		"state":        {func(d *mil.Description) { d.States = nil }, "main/kv: description and program disagree: state of the function that the description does not list; the description's states are: none"},
		"input":        {func(d *mil.Description) { d.Inputs[0].Name = "z" }, "main/x: "},
		"more outputs": {func(d *mil.Description) { d.Outputs = append(d.Outputs, array("z", mil.ArrayPort)) }, "main/z: description and program disagree: output of the description"},
		"type":         {func(d *mil.Description) { d.Inputs[0].Array.DType = mil.Float32 }, "fp32 in the description, want fp16"},
		"shape":        {func(d *mil.Description) { d.States[0].Array.Shape = []int64{2, 4} }, "[2, 4] in the description, want [2, 3]"},
		"functions":    {func(d *mil.Description) { d.Functions = []mil.FunctionDescription{{Name: "other"}} }, "other: description and program disagree: described, but not in the program"},
		"nothing":      {func(d *mil.Description) { *d = mil.Description{} }, "main/x"},
	} {
		t.Run(name, func(t *testing.T) {
			d := full()
			c.spoil(d)
			require.ErrorContains(t, mil.CheckDescription(p, d), c.text)
		})
	}
	require.ErrorIs(t, mil.CheckDescription(p, nil), mil.ErrDescription)
}
