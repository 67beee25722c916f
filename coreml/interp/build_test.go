package interp_test

import (
	"context"
	"fmt"
	"testing"

	"anelab/coreml/interp"
	"anelab/coreml/mil"
	"anelab/internal/half"

	"github.com/stretchr/testify/require"
)

// builder writes a program op by op; types are inferred.
type builder struct {
	body   mil.Block
	inputs []mil.Input
	names  map[string]mil.Type
	consts map[string]*mil.Value
}

func newBuilder() *builder {
	return &builder{names: map[string]mil.Type{}, consts: map[string]*mil.Value{}}
}

// TypeOf implements mil.Scope.
func (b *builder) TypeOf(name string) (mil.Type, bool) { t, ok := b.names[name]; return t, ok }

// Constant implements mil.Scope.
func (b *builder) Constant(name string) *mil.Value { return b.consts[name] }

// Fixed implements mil.Scope.
func (b *builder) Fixed(name string) bool { return true }

func (b *builder) input(name string, t mil.Type) string {
	b.names[name] = t
	b.inputs = append(b.inputs, mil.Input{Variable: mil.Variable{Name: name, Type: t}})
	return name
}

func (b *builder) constant(v *mil.Value) string {
	name := fmt.Sprintf("c%d", len(b.names))
	b.names[name], b.consts[name] = v.Type, v
	b.body.Ops = append(b.body.Ops, &mil.Op{Type: "const", Outputs: []mil.Variable{{Name: name, Type: v.Type}}, Attributes: []mil.Attribute{{Name: "val", Value: v}}})
	return name
}

// op adds an op and returns the names of its results. Arguments are pairs of a parameter and a name, a list of names, or a value.
func (b *builder) op(kind string, outputs int, pairs ...any) []string {
	op := &mil.Op{Type: kind}
	for i := 0; i < len(pairs); i += 2 {
		arg := mil.Argument{Name: pairs[i].(string)}
		switch x := pairs[i+1].(type) {
		case string:
			arg.Bindings = append(arg.Bindings, mil.Ref(x))
		case []string:
			for _, name := range x {
				arg.Bindings = append(arg.Bindings, mil.Ref(name))
			}
		case *mil.Value:
			if op.IsConstexpr() {
				arg.Bindings = append(arg.Bindings, mil.Literal(x))
			} else {
				arg.Bindings = append(arg.Bindings, mil.Ref(b.constant(x)))
			}
		}
		op.Inputs = append(op.Inputs, arg)
	}
	var names []string
	for i := range outputs {
		names = append(names, fmt.Sprintf("v%d_%d", len(b.names), i))
		op.Outputs = append(op.Outputs, mil.Variable{Name: names[i]})
	}
	types, err := mil.Infer(op, mil.CoreML8, b)
	if err != nil {
		panic(err)
	}
	for i, t := range types {
		op.Outputs[i].Type = t
		b.names[names[i]] = t
	}
	b.body.Ops = append(b.body.Ops, op)
	return names
}

func (b *builder) one(kind string, pairs ...any) string { return b.op(kind, 1, pairs...)[0] }

func (b *builder) program(outputs ...string) *mil.Program {
	b.body.Outputs = outputs
	p := &mil.Program{SpecVersion: 9, Functions: []*mil.Function{{Name: "main", Opset: mil.CoreML8, Inputs: b.inputs, Body: &b.body}}}
	p.Sort()
	return p
}

func f16(x float32) *mil.Value { return mil.Scalar(mil.F16(half.F32ToF16(x))) }

func gains(n int) *mil.Value {
	x := make([]mil.F16, n)
	for i := range x {
		x[i] = mil.F16(half.F32ToF16(1 + float32(i%9)/32))
	}
	return mil.Vector(x...)
}

func ints(x ...int32) *mil.Value { return mil.Vector(x...) }

// run runs the program of a builder.
func (b *builder) run(t testing.TB, p interp.Precision, inputs map[string]*interp.Tensor, outputs ...string) map[string]*interp.Tensor {
	t.Helper()
	out, err := interp.Run(context.Background(), b.program(outputs...), "main", inputs, interp.Options{Precision: p})
	require.NoError(t, err)
	return out
}

// tensor is a constant of fp16 numbers.
func tensor(x []float32, shape ...int64) *mil.Value {
	bits := make([]mil.F16, len(x))
	for i, v := range x {
		bits[i] = mil.F16(half.F32ToF16(v))
	}
	v := mil.Vector(bits...)
	v.Type.Shape = shape
	return v
}
