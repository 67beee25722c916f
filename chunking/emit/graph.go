package emit

import (
	"fmt"
	"strconv"
	"strings"

	"anelab/chunking"
	"anelab/coreml/mil"
	"anelab/internal/half"
)

// opset is the least that has palettes of fp16 entries in groups, states and several functions.
const opset = mil.CoreML8

// graph is a function being written: ops are added in execution order, and their types follow from their operands.
type graph struct {
	fn     *mil.Function
	names  map[string]mil.Variable
	values map[string]*mil.Value // of consts, by name
	params map[string]string     // names of parameter consts, by content
	prefix string                // of the names of ops: layers_3_self_attn_
}

func newGraph(name string) *graph {
	return &graph{fn: &mil.Function{Name: name, Opset: opset, Body: &mil.Block{}}, names: map[string]mil.Variable{},
		values: map[string]*mil.Value{}, params: map[string]string{}}
}

// TypeOf implements mil.Scope.
func (g *graph) TypeOf(name string) (mil.Type, bool) {
	v, ok := g.names[name]
	return v.Type, ok
}

// Constant implements mil.Scope.
func (g *graph) Constant(name string) *mil.Value { return g.values[name] }

// Fixed implements mil.Scope.
func (g *graph) Fixed(name string) bool {
	return g.values[name] != nil || strings.HasSuffix(name, palettized)
}

// shape of a result or input.
func (g *graph) shape(name string) []int64 {
	t, _ := g.names[name].Type.AsTensor()
	return t.Shape
}

// input declares a port.
func (g *graph) input(name string, t mil.Type) {
	v := mil.Variable{Name: name, Type: t}
	g.fn.Inputs = append(g.fn.Inputs, mil.Input{Variable: v})
	g.names[name] = v
}

func portType(p chunking.Port) mil.Type {
	d := mil.Float16
	if p.Type == chunking.Int32 {
		d = mil.Int32
	}
	return mil.TensorOf(d, int64s(p.Shape)...)
}

func int64s(shape []int) []int64 {
	s := make([]int64, len(shape))
	for i, n := range shape {
		s[i] = int64(n)
	}
	return s
}

// unique is a name that nothing has yet, beginning with the prefix in force.
func (g *graph) unique(name string) string {
	name = g.prefix + name
	at := name
	for i := 1; g.names[at].Name != ""; i++ {
		at = name + "_" + strconv.Itoa(i)
	}
	return at
}

// arg is one argument of an op under construction.
type arg struct {
	param    string
	bindings []mil.Binding
}

// in binds results of earlier ops.
func in(param string, names ...string) arg {
	a := arg{param: param}
	for _, n := range names {
		a.bindings = append(a.bindings, mil.Ref(n))
	}
	return a
}

// set binds a constant, as a const op in front.
func (g *graph) set(param string, v *mil.Value) arg {
	key := v.Type.String() + " " + fmt.Sprint(v.Content)
	name, known := g.params[key]
	if !known {
		prefix := g.prefix
		g.prefix = ""
		name = g.unique(param + "_" + strconv.Itoa(len(g.params)))
		g.prefix = prefix
		g.constant(name, v)
		g.params[key] = name
	}
	return in(param, name)
}

func (g *graph) ints(param string, list ...int64) arg {
	narrow := make([]int32, len(list))
	for i, n := range list {
		narrow[i] = int32(n)
	}
	return g.set(param, mil.Vector(narrow...))
}

func (g *graph) flag(param string, b bool) arg { return g.set(param, mil.Scalar(b)) }

// f16 is a scalar, rounded as modes hold their constants: through float32.
func f16(x float64) *mil.Value { return mil.Scalar(mil.F16(half.F32ToF16(float32(x)))) }

// constant adds a const op of exactly that name.
func (g *graph) constant(name string, v *mil.Value) {
	g.values[name] = v
	g.add(&mil.Op{Type: "const", Attributes: []mil.Attribute{{Name: "val", Value: v}}}, name, v.Type)
}

// named is a constant of exactly that name, added when it is first asked for.
func (g *graph) named(name string, v *mil.Value) string {
	if g.names[name].Name == "" {
		g.constant(name, v)
	}
	return name
}

// fault ends the writing of a function; [part.function] turns it into its error again.
type fault struct{ error }

// must ends the writing of a function on an error: nothing can be added behind a value that is not there.
func must[T any](v T, err error) T {
	if err != nil {
		panic(fault{err})
	}
	return v
}

// op adds an op with one result and returns its name.
func (g *graph) op(kind, name string, args ...arg) string {
	op := &mil.Op{Type: kind}
	for _, a := range args {
		op.Inputs = append(op.Inputs, mil.Arg(a.param, a.bindings...))
	}
	name = g.unique(name)
	op.Outputs = []mil.Variable{{Name: name}}
	types, err := mil.Infer(op, opset, g)
	if err != nil || len(types) != 1 {
		panic(fmt.Sprintf("emit: %s/%s: %v", g.fn.Name, name, err))
	}
	g.add(op, name, types[0])
	return name
}

// add appends an op and defines its result.
func (g *graph) add(op *mil.Op, name string, t mil.Type) {
	op.Outputs = []mil.Variable{{Name: name, Type: t}}
	op.Attributes = append(op.Attributes, mil.Attribute{Name: "name", Value: mil.Scalar(name)})
	g.fn.Body.Ops = append(g.fn.Body.Ops, op)
	g.names[name] = op.Outputs[0]
}

// effect adds an op without a result.
func (g *graph) effect(kind, name string, args ...arg) {
	op := &mil.Op{Type: kind, Attributes: []mil.Attribute{{Name: "name", Value: mil.Scalar(g.unique(name))}}}
	for _, a := range args {
		op.Inputs = append(op.Inputs, mil.Arg(a.param, a.bindings...))
	}
	g.fn.Body.Ops = append(g.fn.Body.Ops, op)
}

// output makes a result an output of the function under a name of its own.
func (g *graph) output(port, name string) {
	prefix := g.prefix
	g.prefix = ""
	g.op("identity", port, in("x", name))
	g.prefix = prefix
	g.fn.Body.Outputs = append(g.fn.Body.Outputs, port)
}

// keepInputs gives inputs that no op uses one that does: a function must not lose a port that its callers fill.
func (g *graph) keepInputs() {
	used := map[string]bool{}
	for _, op := range g.fn.Body.Ops {
		for name := range mil.Uses(op) {
			used[name] = true
		}
	}
	for _, in := range g.fn.Inputs {
		if !used[in.Name] && in.Type.Kind != mil.State {
			g.op("identity", in.Name+"_tmp", arg{param: "x", bindings: []mil.Binding{mil.Ref(in.Name)}})
		}
	}
}
