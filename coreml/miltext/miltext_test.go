package miltext

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/coreml/mil"
	"anelab/coreml/mil/blob"
	"anelab/coreml/mlpackage"
	"anelab/internal/format"
	"anelab/internal/shareddata"
)

func print(t testing.TB, p *mil.Program, d Dialect) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, Print(&b, p, d))
	return b.String()
}

// TestTextsComeBackByteForByte parses and prints every text of the conformance data: compiled, with placement analytics, and printed
// from packages.
func TestTextsComeBackByteForByte(t *testing.T) { // oracle: Apple's compiler, and gen/mil_text.py of the data
	n, size := 0, 0
	for _, pattern := range []string{"coreml/miltext/*/*.mil", "coreml/miltext/pairs/*/model.mil"} {
		for _, file := range shareddata.Cases(t, pattern) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			p, d, err := Parse(file, string(text))
			require.NoError(t, err)
			require.NoError(t, mil.Check(p), file)
			require.True(t, print(t, p, d) == strings.TrimRight(string(text), "\n"), file)
			n, size = n+1, size+len(text)
		}
	}
	t.Logf("%d texts, %d bytes", n, size)
}

// TestPairsAreTheSameProgram holds each compiled model against the package it was compiled from.
func TestPairsAreTheSameProgram(t *testing.T) { // oracle: Apple's compiler
	for _, file := range shareddata.Cases(t, "coreml/miltext/pairs/*.mlmodelc") {
		c, err := Open(file)
		require.NoError(t, err)
		p, err := mlpackage.Open(strings.TrimSuffix(file, "modelc") + "package")
		require.NoError(t, err)
		require.Empty(t, mil.Diff(p.Program, c.Program), file)
		require.Equal(t, p.Program.SpecVersion, c.Program.SpecVersion)
		require.Equal(t, p.Description.Interface, c.Description.Interface)
		require.Equal(t, p.Description.Metadata.Author, c.Description.Metadata.Author)
		requireSameWeights(t, p.Program, c.Program)
		p.Program.Attributes = c.Program.Attributes // the compiler signs its work
		text, err := os.ReadFile(filepath.Join(file, "model.mil"))
		require.NoError(t, err)
		require.True(t, print(t, p.Program, DialectOf(p.Program)) == strings.TrimRight(string(text), "\n"), file)
		require.NoError(t, c.Close())
		require.NoError(t, p.Close())
	}
}

func requireSameWeights(t testing.TB, a, b *mil.Program) {
	t.Helper()
	other := b.Functions[0].Body.Producers()
	for op := range a.Functions[0].Body.All() {
		for name, v := range op.Values() {
			if v.Blob() == nil {
				continue
			}
			x, err := v.Bytes()
			require.NoError(t, err)
			y, err := other[op.Name()].Attribute(name).Bytes()
			require.NoError(t, err)
			require.True(t, bytes.Equal(x, y), op.Name())
		}
	}
}

// TestPrintedPackages prints packages and compares with the texts that the generator of the data printed from them.
func TestPrintedPackages(t *testing.T) { // oracle: gen/mil_text.py of the data
	n := 0
	for _, file := range shareddata.Cases(t, "coreml/ops/*.mlpackage") {
		name := strings.TrimSuffix(filepath.Base(file), ".mlpackage")
		text, err := os.ReadFile(filepath.Join(shareddata.Dir(t, "coreml/miltext/printed"), "op_"+name+".mil"))
		if err != nil {
			continue
		}
		p, err := mlpackage.Open(file)
		require.NoError(t, err)
		parsed, _, err := Parse(file, string(text))
		require.NoError(t, err)
		require.Empty(t, mil.Diff(p.Program, parsed), name)
		p.Program.Attributes = parsed.Attributes
		require.True(t, print(t, p.Program, DialectOf(p.Program)) == strings.TrimRight(string(text), "\n"), name)
		require.NoError(t, p.Close())
		n++
	}
	require.NotZero(t, n)
	t.Logf("%d packages printed", n)
}

const sample = `program(1.3)
[buildInfo = dict<string, string>({{"a", "b\"\\"}})]
{
    func f<ios18>(state<tensor<fp16, [2, 3]>> s, tensor<fp16, [2, ?]> x) [Note = list<tuple<string, tensor<int32, [2]>>, ?>([("p", [1, -2]), ("q", [3, 4])])] {
            tensor<fp16, [2, 3]> r = read_state(input = s)[name = string("r")];
            write_state(data = r, input = s)[name = string("w")];
            tensor<fp16, [2, 2]> c = const()[name = string("c"), val = tensor<fp16, [2, 2]>([[0x1p+0, -0x1.8p-15], [inf, -inf]])];
            tensor<uint3, [5]> u = const()[name = string("u"), val = tensor<uint3, [5]>([1, 2, 3, 4, 7])];
            tensor<bool, [2]> b = const()[name = string("b"), val = tensor<bool, [2]>([true, false])];
            tensor<fp16, [0]> none = const()[name = string("none"), val = tensor<fp16, [0]>([])];
            uint64 big = const()[name = string("big"), val = uint64(18446744073709551615)];
            tensor<fp16, [4, 2]> y, tensor<int32, [1]> z = made_up<ios17>(none = (), one = c, two = (c, fp16(0x1p-24)))[Times = dict<string, fp64>({{"ane", 0}, {"cpu", 6.5536000000000004e-05}}), name = string("y")];
        } -> (y, z);
    func g<ios18>() {
        } -> ();
}`

func TestSampleComesBack(t *testing.T) { // hand
	p, d, err := Parse("t", sample)
	require.NoError(t, err)
	require.Equal(t, Dialect13, d)
	require.Equal(t, sample, print(t, p, d))
	f := p.Function("f")
	require.Equal(t, mil.Pack(mil.UInt3, []int64{1, 2, 3, 4, 7}), bytesOf(t, f.Body.Ops[3].Attribute("val")))
	require.Equal(t, []byte{0, 0x3c, 0, 0x83, 0, 0x7c, 0, 0xfc}, bytesOf(t, f.Body.Ops[2].Attribute("val"))) // -0x1.8p-15 is 768 steps of 2^-24
	require.Equal(t, mil.CoreML7, f.Body.Ops[7].Opset)
	require.Empty(t, f.Body.Ops[7].Input("none"))

	older := print(t, p, Dialect10)
	require.Contains(t, older, `tensor<uint64, []> big = const()[name = tensor<string, []>("big"), val = tensor<uint64, []>(18446744073709551615)];`)
	q, d, err := Parse("t", older)
	require.NoError(t, err)
	require.Equal(t, Dialect10, d)
	require.Empty(t, mil.Diff(p, q))
}

func bytesOf(t testing.TB, v *mil.Value) []byte {
	t.Helper()
	b, err := v.Bytes()
	require.NoError(t, err)
	return b
}

func TestFaultyTexts(t *testing.T) { // hand
	op := func(s string) string { return "program(1.3)\n{ func f<ios18>() {\n  " + s + "\n} -> (); }" }
	for name, c := range map[string]struct {
		text  string
		want  error
		at    string
		text2 string
	}{
		"nothing":            {"", ErrSyntax, "t: 1:1", "want program"},
		"another language":   {"module @main {", ErrSyntax, "1:1", "want program"},
		"version":            {"program(2.0) {}", ErrSyntax, "1:9", "want version 1.0 to 1.3"},
		"unknown opset":      {"program(1.0) { func f<ios99>() {} -> (); }", ErrSyntax, "1:23", "opset ios99"},
		"text after the end": {"program(1.0) {} {", ErrSyntax, "1:17", "nothing after"},
		"unknown type":       {op("tensor<fp17, [2]> a = const();"), ErrSyntax, "3:10", "type fp17"},
		"no semicolon":       {op("fp16 a = const()[val = fp16(0x1p+0)]"), ErrSyntax, "4:1", "want \";\""},
		"string without end": {op(`string a = const()[val = string("x)];`), ErrSyntax, "3:35", "without an end"},
		"odd character":      {op("fp16 a = const() $"), ErrSyntax, "3:20", "'$'"},
		"negative size":      {op("tensor<fp16, [-2]> a = const();"), ErrSyntax, "3:17", "want a size or ?"},
		"number as text":     {op(`string a = const()[val = string(7)];`), ErrSyntax, "3:35", "want a string"},
		"too few elements":   {op("tensor<int8, [3]> a = const()[val = tensor<int8, [3]>([1, 2])];"), ErrLiteral, "3:57", "2 entries in dimension 0, want 3"},
		"too many":           {op("tensor<int8, [1, 1]> a = const()[val = tensor<int8, [1, 1]>([[1, 2]])];"), ErrLiteral, "3:64", "2 entries in dimension 1, want 1"},
		"missing brackets":   {op("tensor<int8, [1, 1]> a = const()[val = tensor<int8, [1, 1]>([1])];"), ErrSyntax, "3:64", "want \"[\""},
		"out of range":       {op("int8 a = const()[val = int8(128)];"), ErrLiteral, "3:31", "a number of type int8"},
		"uint4 out of range": {op("uint4 a = const()[val = uint4(16)];"), ErrLiteral, "3:33", "a number of type uint4"},
		"fraction":           {op("int32 a = const()[val = int32(1.5)];"), ErrLiteral, "3:33", ""},
		"number for a bool":  {op("bool a = const()[val = bool(1)];"), ErrLiteral, "3:31", ""},
		"constant state":     {op("fp16 a = f()[val = state<fp16>(0)];"), ErrLiteral, "3:34", "a constant of type state<fp16>"},
		"dict of three":      {op("fp16 a = f()[val = dict<fp16, fp16, fp16>({})];"), ErrSyntax, "3:27", "3 types in a dict"},
		"offset of text":     {op(`fp16 a = f()[val = fp16(BLOBFILE(path = string("w"), offset = string("0")))];`), ErrLiteral, "3:27", ""},
		"nested block":       {op("fp16 a = cond(p = bool(true)) { };"), ErrSyntax, "3:33", "a nested block"},
		"deep types":         {op("f(a = " + strings.Repeat("list<", 40)), ErrTooDeep, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Parse("t", c.text)
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.at)
			require.ErrorContains(t, err, c.text2)
			var f *format.Error
			require.True(t, errors.As(err, &f))
		})
	}
	for n := range len(sample) {
		_, _, err := Parse("t", sample[:n])
		require.Error(t, err, n)
	}
}

func TestPrinterRefusesWhatHasNoText(t *testing.T) { // hand
	p, _, err := Parse("t", sample)
	require.NoError(t, err)
	op := p.Functions[0].Body.Ops[0]
	op.Blocks = []*mil.Block{{}}
	require.ErrorIs(t, Print(io.Discard, p, Dialect13), ErrNoText)
	op.Blocks = nil
	op.Outputs[0].Type = mil.Type{}
	require.ErrorIs(t, Print(io.Discard, p, Dialect13), ErrNoText)
	op.Outputs[0].Type = mil.TensorOf(mil.Float16)
	op.Attributes[0].Value = &mil.Value{Type: mil.TensorOf(mil.Int8, 2), Content: mil.Raw("a")}
	require.ErrorIs(t, Print(io.Discard, p, Dialect13), ErrNoText)
}

// compiled makes an .mlmodelc from a package of testdata.
func compiled(t testing.TB, name string) string {
	t.Helper()
	p, err := mlpackage.Open(filepath.Join(shareddata.ModuleRoot(t), "testdata/coreml/ops", name+".mlpackage"))
	require.NoError(t, err)
	defer p.Close()
	dir := filepath.Join(t.TempDir(), name+".mlmodelc")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "weights"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.mil"), []byte(print(t, p.Program, DialectOf(p.Program))), 0o600))
	weights, err := os.ReadFile(filepath.Join(p.Path, "Data/com.apple.CoreML/weights/weight.bin"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "weights", "weight.bin"), weights, 0o600))
	return dir
}

func TestPackagesAsCompiledModels(t *testing.T) { // invariant
	for _, name := range []string{"multifunction", "lut_w4_odd_count", "ios16_lut_w4", "gemma_mlp_block", "flex_range_dim"} {
		t.Run(name, func(t *testing.T) {
			c, err := Open(compiled(t, name))
			require.NoError(t, err)
			defer c.Close()
			p, err := mlpackage.Open(filepath.Join(shareddata.ModuleRoot(t), "testdata/coreml/ops", name+".mlpackage"))
			require.NoError(t, err)
			defer p.Close()
			require.Empty(t, mil.Diff(p.Program, c.Program))
			require.Nil(t, c.Description)
		})
	}
}

func TestCHK11CompiledFormIsToldApart(t *testing.T) { // hand
	_, err := Open(filepath.Join(shareddata.ModuleRoot(t), "testdata/coreml/ops/multifunction.mlpackage"))
	require.ErrorIs(t, err, ErrNotCompiled)
	require.ErrorContains(t, err, "open it as .mlpackage")
	_, err = Open(t.TempDir())
	require.ErrorIs(t, err, os.ErrNotExist)

	dir := compiled(t, "gemma_mlp_block")
	require.NoError(t, os.Remove(filepath.Join(dir, "weights", "weight.bin")))
	_, err = Open(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "weight.bin")

	dir = compiled(t, "gemma_mlp_block")
	text := filepath.Join(dir, "model.mil")
	raw, err := os.ReadFile(text)
	require.NoError(t, err)
	for _, c := range []struct {
		old, new string
		want     error
	}{
		{"offset = uint64(64)", "offset = uint64(128)", blob.ErrOffset},
		{"@model_path/", "@model_path/../", blob.ErrName},
		{" = gelu(", " = gelo(", mil.ErrUnknownOp},
		{"func main", "fun main", ErrSyntax},
	} {
		require.NoError(t, os.WriteFile(text, []byte(strings.Replace(string(raw), c.old, c.new, 1)), 0o600))
		_, err = Open(dir)
		require.ErrorIs(t, err, c.want, c.new)
	}
	require.NoError(t, os.WriteFile(text, raw, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "metadata.json"), []byte(`[{"specificationVersion": 8}]`), 0o600))
	_, err = Open(dir)
	require.ErrorIs(t, err, mil.ErrOpsetTooNew)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "metadata.json"), []byte("{"), 0o600))
	_, err = Open(dir)
	require.ErrorContains(t, err, "metadata.json")
	require.NoError(t, os.Remove(filepath.Join(dir, "metadata.json")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "coremldata.bin"), []byte("short"), 0o600))
	_, err = Open(dir)
	require.ErrorIs(t, err, ErrNotCompiled)
}

// TestFlexibleShapesOfTexts: the attribute as the compiler writes it for ranges, and with lists of shapes.
func TestFlexibleShapesOfTexts(t *testing.T) { // hand
	for name, c := range map[string]struct {
		attribute string
		want      mil.Flexible
	}{
		"ranges": {`tuple<tuple<tensor<string, []>, dict<tensor<string, []>, tensor<int32, [?]>>>, tuple<tensor<string, []>, dict<tensor<string, []>, list<tensor<int32, [2]>, ?>>>>((("DefaultShapes", {{"x", [1, 266]}}), ("RangeDims", {{"x", [[1, 1], [2, 4000]]}})))`,
			mil.Flexible{Default: []int64{1, 266}, Ranges: []mil.Range{{Min: 1, Max: 1}, {Min: 2, Max: 4000}}}},
		"lists": {`tuple<tuple<tensor<string, []>, dict<tensor<string, []>, tensor<int32, [?]>>>, tuple<tensor<string, []>, dict<tensor<string, []>, dict<tensor<string, []>, tensor<int32, [?]>>>>>((("DefaultShapes", {{"x", [1, 5]}}), ("EnumeratedShapes", {{"8a", {{"x", [1, 5]}}}, {"9b", {{"x", [1, 7]}}}})))`,
			mil.Flexible{Default: []int64{1, 5}, Enumerated: [][]int64{{1, 5}, {1, 7}}}},
	} {
		t.Run(name, func(t *testing.T) {
			text := "program(1.0)\n{\n    func main<ios17>(tensor<fp32, [1, ?]> x) [FlexibleShapeInformation = " + c.attribute +
				"] {\n            tensor<fp32, [1, ?]> y = relu(x = x)[name = tensor<string, []>(\"y\")];\n        } -> (y);\n}"
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "model.mil"), []byte(text), 0o600))
			m, err := Open(dir)
			require.NoError(t, err)
			require.Equal(t, &c.want, m.Program.Functions[0].Inputs[0].Flexible)
			require.Equal(t, text, print(t, m.Program, m.Dialect))
			require.NoError(t, m.Close())
		})
	}
}

// allocated is the memory that f allocates, live or not.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestMemoryIsBounded(t *testing.T) { // invariant
	op := func(s string) string { return "program(1.3){func f<ios18>(){" + s }
	for name, text := range map[string]string{
		"ops":       op(strings.Repeat("a();", 1<<18)),
		"functions": "program(1.3){" + strings.Repeat("func f<ios18>(){}->();", 1<<16),
		"outputs":   op(strings.Repeat("int8 a,", 1<<17)),
		"bindings":  op("a(b=(" + strings.Repeat("a,", 1<<19)),
		"elements":  op("a(b=tensor<int64,[9999999]>([" + strings.Repeat("0,", 1<<19)),
		"bits":      op("a(b=tensor<uint1,[9999999]>([" + strings.Repeat("0,", 1<<19)),
		"strings":   op("a(b=tensor<string,[9999999]>([" + strings.Repeat("\"\",", 1<<19)),
		"escapes":   op("a(b=tensor<string,[9999999]>([" + strings.Repeat("\"\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\",", 1<<16)),
		"size":      op("a(b=tensor<int8,[1000000000000]>([]));"),
		"sizes":     op("tensor<int8,[" + strings.Repeat("0,", 1<<19)),
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			used := allocated(func() { _, _, err = Parse("bomb", text) })
			t.Logf("%d bytes: %d allocated, %.100v", len(text), used, err)
			require.Error(t, err)
			require.LessOrEqual(t, used, uint64(4*len(text)+1<<20))
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample)
	f.Add(strings.ReplaceAll(sample, "1.3", "1.0"))
	for _, name := range []string{"multifunction", "lut_w4_odd_count", "ios16_lut_w4"} {
		text, err := os.ReadFile(filepath.Join(compiled(f, name), "model.mil"))
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		var p *mil.Program
		var d Dialect
		var err error
		if used := allocated(func() { p, d, err = Parse("fuzz", text) }); used > uint64(4*len(text)+1<<20) {
			t.Fatalf("%d bytes allocated for %d", used, len(text))
		}
		if err != nil {
			return
		}
		_ = mil.Check(p)
		var b strings.Builder
		if err := Print(&b, p, d); err != nil {
			t.Fatal(err)
		}
		again, _, err := Parse("again", b.String())
		if err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
		if diff := mil.Diff(p, again); diff != "" {
			t.Fatal(diff)
		}
	})
}
