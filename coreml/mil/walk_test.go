package mil_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/coreml/mil"
)

func names(b *mil.Block) (list []string) {
	for op := range b.All() {
		list = append(list, op.Name())
	}
	return list
}

func TestOrder(t *testing.T) { // hand
	p := parse(t, "ios18", x23+", "+kv, `
		tensor<fp16, [2, 3]> d = add(x = c, y = b);
		tensor<fp16, [2, 3]> r = read_state(input = kv);
		tensor<fp16, [2, 3]> c = relu(x = a);
		write_state(data = c, input = kv)[name = string("w")];
		tensor<fp16, [2, 3]> q = read_state(input = kv);
		tensor<fp16, [2, 3]> b = relu(x = a);
		tensor<fp16, [2, 3]> a = relu(x = x);`, "d")
	require.ErrorIs(t, mil.Check(p), mil.ErrOrder)
	body := p.Functions[0].Body
	require.NoError(t, body.Order())
	require.NoError(t, mil.Check(p))
	require.Len(t, body.Ops, 7)
	at := map[string]int{}
	for i, n := range names(body) {
		at[n] = i
	}
	require.Less(t, at["r"], at["w"], "ops on one state keep their order")
	require.Less(t, at["w"], at["q"])
	p = parse(t, "ios18", x23, "tensor<fp16, [2, 3]> y = relu(x = z); tensor<fp16, [2, 3]> z = relu(x = y);", "y")
	require.ErrorIs(t, p.Functions[0].Body.Order(), mil.ErrCycle)
}

func TestNestedBlocks(t *testing.T) { // hand
	inner := func(op string, operand string) *mil.Block {
		return &mil.Block{Ops: []*mil.Op{{Type: op, Inputs: []mil.Argument{mil.Arg("x", mil.Ref(operand))}, Outputs: []mil.Variable{{Name: op + "_0", Type: mil.TensorOf(mil.Float16, 2, 3)}}}}, Outputs: []string{op + "_0"}}
	}
	p := parse(t, "ios18", x23+", bool b", relu, "y")
	body := p.Functions[0].Body
	body.Ops = append(body.Ops, &mil.Op{Type: "cond", Inputs: []mil.Argument{mil.Arg("pred", mil.Ref("b"))}, Blocks: []*mil.Block{inner("exp", "y"), inner("tanh", "x")},
		Outputs: []mil.Variable{{Name: "z", Type: mil.TensorOf(mil.Float16, 2, 3)}}})
	body.Outputs = []string{"z"}
	require.NoError(t, mil.Check(p), "a block sees the names around it")
	require.Equal(t, []string{"y", "z", "exp_0", "tanh_0"}, names(body))
	require.Len(t, body.Consumers()["y"], 1, "through the block")
	require.Equal(t, "cond", body.Consumers()["y"][0].Type)
	require.Equal(t, "relu", body.Producers()["y"].Type)

	body.Ops[1].Blocks[0] = inner("exp", "tanh_0")
	require.ErrorIs(t, mil.Check(p), mil.ErrUndefined, "not those of a block beside it")
	body.Ops[1].Blocks[0] = inner("exp", "z")
	require.ErrorIs(t, mil.Check(p), mil.ErrUndefined, "nor the result of the op itself")
	body.Ops[1].Blocks[0] = inner("exp", "y")
	body.Ops[1].Blocks[0].Outputs = []string{"nothing"}
	require.ErrorIs(t, mil.Check(p), mil.ErrOutput)
}

func TestDiffNamesTheFirstDifference(t *testing.T) { // hand
	const ops = "fp16 c = const()[name = string(\"c\"), val = fp16(0x1p+0)];" + w45 + "tensor<fp16, [2, 3]> y = add(x = x, y = c)[name = string(\"y\")];"
	build := func(opset, inputs, ops, outputs string) *mil.Program { return parse(t, opset, inputs, ops, outputs) }
	a := build("ios18", x23+", "+kv, ops, "y")
	require.Empty(t, mil.Diff(a, build("ios18", kv+", "+x23, ops, "y")), "inputs in any order")
	for name, c := range map[string]struct {
		b    *mil.Program
		want string
	}{
		"opset":   {build("ios17", x23+", "+kv, ops, "y"), "opset CoreML8 and CoreML7"},
		"inputs":  {build("ios18", x23, ops, "y"), "2 and 1 inputs"},
		"type":    {build("ios18", "tensor<fp16, [2, 4]> x, "+kv, ops, "y"), "[2, 4]"},
		"ops":     {build("ios18", x23+", "+kv, ops+"fp16 d = const()[val = fp16(0x1p+0)];", "y"), "3 and 4 ops"},
		"outputs": {build("ios18", x23+", "+kv, ops, "x"), "outputs y and x"},
		"value":   {build("ios18", x23+", "+kv, replace(ops, "0x1p+0", "0x1p+1"), "y"), "op 0, c: attributes val and val"},
		"offset":  {build("ios18", x23+", "+kv, replace(ops, "uint64(64)", "uint64(128)"), "y"), "op 1, w: attributes val"},
		"operand": {build("ios18", x23+", "+kv, replace(ops, "y = c", "y = x"), "y"), "op 2, y: operands y"},
		"op":      {build("ios18", x23+", "+kv, replace(ops, "= add(", "= mul("), "y"), "op 2, y: add and mul"},
	} {
		t.Run(name, func(t *testing.T) { require.Contains(t, mil.Diff(a, c.b), c.want) })
	}
}

func replace(s, old, new string) string { return strings.Replace(s, old, new, 1) }
