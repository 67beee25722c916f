package place

import (
	"testing"

	"anelab/coreml/mil"

	"github.com/stretchr/testify/require"
)

// one is a function with one op on inputs and constants; inputs are named as the parameters that they go to.
type one struct {
	op        string
	inputs    []mil.Variable
	constants []mil.Argument
	result    mil.Type
}

func (o one) function() *mil.Function {
	f := &mil.Function{Name: mil.MainFunction, Opset: mil.CoreML8, Body: &mil.Block{Outputs: []string{"result"}}}
	op := &mil.Op{Type: o.op, Inputs: o.constants, Outputs: []mil.Variable{{Name: "result", Type: o.result}}}
	for _, in := range o.inputs {
		f.Inputs = append(f.Inputs, mil.Input{Variable: in})
		op.Inputs = append(op.Inputs, mil.Arg(in.Name, mil.Ref(in.Name)))
	}
	f.Body.Ops = []*mil.Op{op}
	return f
}

func (o one) refusal(limits Limits) Rule {
	f := o.function()
	if r := scopeOf(f).refuse(f.Body.Ops[0], &limits); r != nil {
		return r.Rule
	}
	return ""
}

func fp16(name string, shape ...int64) mil.Variable {
	return mil.Variable{Name: name, Type: mil.TensorOf(mil.Float16, shape...)}
}

// weight is a constant of a shape; its contents are not looked at.
func weight(name string, shape ...int64) mil.Argument {
	return mil.Arg(name, mil.Literal(&mil.Value{Type: mil.TensorOf(mil.Float16, shape...)}))
}

func setting[T mil.Literalable](name string, x T) mil.Argument {
	return mil.Arg(name, mil.Literal(mil.Scalar(x)))
}

// hand: both sides of every limit, the numbers of spec ane.md A5 and limits.csv.
func TestBothSidesOfEveryLimit(t *testing.T) {
	conv := func(kernel, channels, groups int64) one {
		return one{"conv", []mil.Variable{fp16("x", 1, channels, 40, 40)}, []mil.Argument{weight("weight", channels, channels/groups, 1, kernel), setting("groups", int32(groups))},
			mil.TensorOf(mil.Float16, 1, channels, 40, 40)}
	}
	pool := func(n int32) one {
		return one{"max_pool", []mil.Variable{fp16("x", 1, 8, 40, 40)}, []mil.Argument{mil.Arg("kernel_sizes", mil.Literal(mil.Vector(n, 2)))}, mil.TensorOf(mil.Float16, 1, 8, 20, 20)}
	}
	matmul := func(k int64) one {
		return one{"matmul", []mil.Variable{fp16("x", 4, k), fp16("y", k, 8)}, nil, mil.TensorOf(mil.Float16, 4, 8)}
	}
	rank := func(dims ...int64) one {
		return one{"matmul", []mil.Variable{fp16("x", dims...), fp16("y", dims...)}, nil, mil.TensorOf(mil.Float16, dims...)}
	}
	wide := func(n int64) one {
		return one{"abs", []mil.Variable{fp16("x", 1, n)}, nil, mil.TensorOf(mil.Float16, 1, n)}
	}
	gemv := func(k int64) one {
		return one{"linear", []mil.Variable{fp16("x", 1, k)}, []mil.Argument{weight("weight", 64, k)}, mil.TensorOf(mil.Float16, 1, 64)}
	}
	for name, c := range map[string]struct {
		inside, beyond one
		limits         Limits
		rule           Rule
	}{
		"kernel":                     {conv(15, 8, 1), conv(16, 8, 1), Since16, RuleKernel},
		"pool":                       {pool(8), pool(9), Since16, RuleKernel},
		"depthwise":                  {conv(3, 1023, 1023), conv(3, 1024, 1024), Since16, RuleDepthwise},
		"contraction":                {matmul(32768), matmul(32769), Since16, RuleDimension},
		"rank":                       {rank(1, 2, 4, 4), rank(1, 1, 2, 4, 4), Since16, RuleDimension},
		"dimension":                  {wide(65536), wide(65537), Since16, RuleDimension},
		"dimension up to A15":        {wide(16384), wide(16385), Before16, RuleDimension},
		"SIM-02 GEMV of 16384":       {gemv(16384), gemv(16385), Before16, RuleDimension},
		"SIM-02 GEMV after A16":      {gemv(16385), gemv(65537), Since16, RuleDimension},
		"pointwise is not depthwise": {conv(1, 1024, 1024), conv(3, 1024, 1024), Since16, RuleDepthwise},
	} {
		require.Empty(t, c.inside.refusal(c.limits), name)
		require.Equal(t, c.rule, c.beyond.refusal(c.limits), name)
	}
	require.NotEmpty(t, Since16.Source)
	require.NotEmpty(t, Before16.Source)
}

// hand: types, places and names.
func TestWhatTheEngineRefuses(t *testing.T) {
	typed := func(name string, d mil.DType, shape ...int64) mil.Variable {
		return mil.Variable{Name: name, Type: mil.TensorOf(d, shape...)}
	}
	indices := mil.Arg("indices", mil.Literal(mil.Vector[uint16](1, 2, 3)))
	for name, c := range map[string]struct {
		op   one
		want Rule
	}{
		"abs":                        {one{"abs", []mil.Variable{fp16("x", 2, 3)}, nil, mil.TensorOf(mil.Float16, 2, 3)}, ""},
		"mod":                        {one{"mod", []mil.Variable{fp16("x", 2, 3), fp16("y", 2, 3)}, nil, mil.TensorOf(mil.Float16, 2, 3)}, RuleOp},
		"sliding_windows":            {one{"sliding_windows", []mil.Variable{fp16("x", 2, 3)}, nil, mil.TensorOf(mil.Float16, 2, 2, 2)}, RuleConverter},
		"scatter":                    {one{"scatter", []mil.Variable{fp16("data", 2, 3)}, nil, mil.TensorOf(mil.Float16, 2, 3)}, RuleScatter},
		"gather of computed indices": {one{"gather", []mil.Variable{fp16("x", 5, 3), typed("indices", mil.UInt16, 2)}, nil, mil.TensorOf(mil.Float16, 2, 3)}, RuleGather},
		"gather of fixed indices":    {one{"gather", []mil.Variable{fp16("x", 5, 3)}, []mil.Argument{indices}, mil.TensorOf(mil.Float16, 3, 3)}, ""},
		"argmax":                     {one{"reduce_argmax", []mil.Variable{fp16("x", 2, 3)}, nil, mil.TensorOf(mil.Int32, 2)}, RuleOutput},
		"topk with narrow indices":   {one{"topk", []mil.Variable{fp16("x", 2, 3)}, nil, mil.TensorOf(mil.UInt16, 2, 1)}, ""},
		"int32 in":                   {one{"cast", []mil.Variable{typed("x", mil.Int32, 2)}, nil, mil.TensorOf(mil.Float16, 2)}, RuleType},
		"int32 out":                  {one{"cast", []mil.Variable{fp16("x", 2)}, nil, mil.TensorOf(mil.Int32, 2)}, RuleType},
		"cast from fp32":             {one{"cast", []mil.Variable{typed("x", mil.Float32, 2)}, nil, mil.TensorOf(mil.Float16, 2)}, ""},
		"fp32 arithmetic":            {one{"add", []mil.Variable{typed("x", mil.Float32, 2), typed("y", mil.Float32, 2)}, nil, mil.TensorOf(mil.Float32, 2)}, RuleType},
		"an int32 constant":          {one{"greater_equal", []mil.Variable{typed("x", mil.Int32, 2)}, []mil.Argument{setting("y", int32(0))}, mil.TensorOf(mil.Bool, 2)}, RuleOperand},
		"an int32 setting":           {one{"softmax", []mil.Variable{fp16("x", 2, 3)}, []mil.Argument{setting("axis", int32(1))}, mil.TensorOf(mil.Float16, 2, 3)}, ""},
		"a slice from anywhere":      {one{"slice_by_size", []mil.Variable{fp16("x", 5, 3), typed("begin", mil.Int32, 2)}, nil, mil.TensorOf(mil.Float16, 2, 3)}, RuleDynamic},
		"an open shape":              {one{"abs", []mil.Variable{fp16("x", mil.Unknown, 3)}, nil, mil.TensorOf(mil.Float16, mil.Unknown, 3)}, RuleDynamic},
		"a port of int32":            {one{"tensor_buffer_to_tensor", []mil.Variable{typed("input", mil.Int32, 2)}, nil, mil.TensorOf(mil.Int32, 2)}, RulePort},
	} {
		require.Equal(t, c.want, c.op.refusal(Since16), name)
	}
}

// hand: messages as they were met, and forms that were not.
func TestMessagesAndTheirRules(t *testing.T) {
	for message, want := range map[string]Rule{
		`Unsupported MIL operation "band_part".`:                                  RuleOp,
		"MIL converter not implemented.":                                          RuleConverter,
		"Tensor buffer live-in not created: Unsupported tensor data type: int32":  RulePort,
		"Unsupported tensor data type: int32":                                     RuleType,
		"Output type int32 is not supported.":                                     RuleOutput,
		`Unable to resolve operation input "y".`:                                  RuleOperand,
		"Unsupported gather index type":                                           RuleGather,
		"Error: conv with large kernel does not meet decomposition preconditions": RuleKernel,
		"scatter MIL op is currently only supported on uANE targets (u1-u4)":      RuleScatter,
		"Padding mode is not supported":                                           RuleSettings,
		"":                                                                        RuleOther,
		"?":                                                                       RuleOther,
	} {
		require.Equal(t, want, RuleOf(message), message)
	}
}
