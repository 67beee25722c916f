package spec

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/coreml/mil"
	"anelab/internal/shareddata"
)

// models are the serialized models of testdata, by name.
func models(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(shareddata.ModuleRoot(t), "testdata/coreml/ops/*.mlpackage/Data/com.apple.CoreML/model.mlmodel"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	all := map[string]string{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		all[strings.Split(filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(f)))), ".")[0]] = string(data)
	}
	return all
}

func decode(t testing.TB, data string) *Model {
	t.Helper()
	m, err := Decode("model.mlmodel", data)
	require.NoError(t, err)
	return m
}

func TestModelsComeBack(t *testing.T) { // invariant
	for name, data := range models(t) {
		t.Run(name, func(t *testing.T) {
			m := decode(t, data)
			again := Encode(m, nil)
			require.Len(t, again, len(data), "only the order of map entries may differ from the converter's")
			n := decode(t, string(again))
			require.Empty(t, mil.Diff(m.Program, n.Program))
			require.Equal(t, m.Description, n.Description)
			require.Equal(t, m.Program.SpecVersion, n.Program.SpecVersion)
			require.Equal(t, again, Encode(n, nil), "written once, a model stays the same in every byte")
		})
	}
}

func TestDescriptionsComeBack(t *testing.T) { // invariant
	d := &mil.Description{
		Functions: []mil.FunctionDescription{{Name: "f", Interface: mil.Interface{
			Inputs: []mil.Feature{
				{Name: "x", Doc: "tokens", Kind: mil.ArrayPort, Optional: true, Array: &mil.ArrayFeature{DType: mil.Int32, Shape: []int64{1, 5}, Flexible: &mil.Flexible{Default: []int64{1, 5}, Ranges: []mil.Range{{Min: 1, Max: 1}, {Min: 2, Max: mil.Unknown}}}}},
				{Name: "e", Kind: mil.ArrayPort, Array: &mil.ArrayFeature{DType: mil.Int8, Shape: []int64{3}, Flexible: &mil.Flexible{Default: []int64{3}, Enumerated: [][]int64{{3}, {7}}}}},
				{Name: "img", Other: "\x22\x02\x08\x05"},
			},
			Outputs: []mil.Feature{{Name: "y", Kind: mil.ArrayPort, Array: &mil.ArrayFeature{DType: mil.Float64}}},
			States:  []mil.Feature{{Name: "s", Kind: mil.StatePort, Array: &mil.ArrayFeature{DType: mil.Float16, Shape: []int64{2, 32}}}},
		}, PredictedFeature: "label", PredictedProbs: "p"}},
		DefaultFunction: "f",
		Metadata:        mil.Metadata{Doc: "d", Version: "1", Author: "a", License: "l", UserDefined: []mil.UserDefined{{Key: "", Value: "v"}, {Key: "k", Value: ""}}},
	}
	back, err := DecodeDescription("d", string(EncodeDescription(d)))
	require.NoError(t, err)
	back.Inputs, back.Outputs, back.States, back.TrainingInputs = nil, nil, nil, nil
	require.Equal(t, d, back)
}

// field encodes a length-delimited field, number a varint field.
func field(num int, contents string) string {
	var w writer
	w.element(num, contents)
	return string(w.buf)
}

func number(num int, n int64) string {
	var w writer
	w.oneof(num, n)
	return string(w.buf)
}

// tiny is a model with unknown fields wherever unknown returns one.
func tiny(unknown func(where string) string) string {
	dim := field(3, field(1, number(1, 2))+unknown("dimension"))
	typ := field(1, number(1, 10)+number(2, 1)+dim+unknown("tensor type")) + unknown("type")
	value := field(2, typ) + field(3, field(1, field(7, field(1, "abcd"))+unknown("tensor value"))+unknown("immediate")) + unknown("value")
	op := field(1, "const") + field(3, field(1, "c")+field(2, typ)+unknown("variable")) + field(5, field(1, "val")+field(2, value)) + unknown("op")
	block := field(2, "c") + field(3, op) + unknown("block")
	function := field(1, field(1, "x")+field(2, typ)) + field(2, "CoreML8") + field(3, field(1, "CoreML8")+field(2, block)) + unknown("function")
	program := number(1, 1) + field(2, field(1, "main")+field(2, function)) + unknown("program")
	shape := field(1, field(1, "\x03")+unknown("shape")) + unknown("enumerated")
	port := func(name string) string {
		return field(1, name) + field(3, field(5, field(1, "\x02")+number(2, 65552)+field(21, shape)+unknown("array"))) + unknown("feature")
	}
	description := field(1, port("x")) + field(10, port("c")) + field(100, field(3, "me")+unknown("metadata")) + unknown("description")
	return number(1, 9) + field(2, description) + field(502, program) + unknown("model")
}

func TestUnknownFieldsAreKept(t *testing.T) { // hand
	wire := map[string]string{"varint": number(777, 300), "bytes": field(777, "xyz"), "fixed32": "\xcd\x30abcd", "fixed64": "\xc9\x30abcdefgh"}
	places := map[string]bool{}
	tiny(func(where string) string { places[where] = true; return "" })
	require.Len(t, places, 18)
	for where := range places {
		for name, raw := range wire {
			data := tiny(func(at string) string {
				if at == where {
					return raw
				}
				return ""
			})
			again := string(Encode(decode(t, data), nil))
			require.Equal(t, strings.Count(data, raw), strings.Count(again, raw), "%s in %s", name, where)
			require.Len(t, again, len(data), "%s in %s", name, where)
			require.Equal(t, again, string(Encode(decode(t, again), nil)))
		}
	}
	all := tiny(func(string) string { return field(777, "xyz") })
	require.Len(t, Encode(decode(t, all), nil), len(all))
}

func TestKeptFieldsDoNotOutliveAChange(t *testing.T) { // hand
	m := decode(t, tiny(func(where string) string {
		if where == "value" || where == "tensor type" {
			return field(777, "xyz")
		}
		return ""
	}))
	f := m.Program.Functions[0]
	op := f.Body.Ops[0]
	op.Attributes[0].Value.Type = mil.TensorOf(mil.Int8, 4)
	op.Outputs[0].Type = mil.TensorOf(mil.Int8, 4)
	n := decode(t, string(Encode(m, nil)))
	require.Equal(t, "tensor<int8, [4]>", n.Program.Functions[0].Body.Ops[0].Outputs[0].Type.String())
	require.Equal(t, "tensor<int8, [4]>", n.Program.Functions[0].Body.Ops[0].Attributes[0].Value.Type.String())
}

func TestFaultyModels(t *testing.T) { // hand
	none := func(string) string { return "" }
	good := tiny(none)
	inside := func(where, raw string) string {
		return tiny(func(at string) string {
			if at == where {
				return raw
			}
			return ""
		})
	}
	for name, c := range map[string]struct {
		data string
		want error
		text string
	}{
		"nothing":                  {"", ErrModelType, "no program"},
		"neural network":           {number(1, 4) + field(500, ""), ErrModelType, "a neural network"},
		"cut short":                {good[:len(good)-3], ErrTruncated, "field 502"},
		"group":                    {good + "\x0b", ErrMalformed, "wire type 3"},
		"field 0":                  {good + "\x02\x00", ErrMalformed, "field number 0"},
		"endless number":           {"\x08" + strings.Repeat("\xff", 11), ErrMalformed, "ten bytes"},
		"number cut short":         {"\x08\xff", ErrTruncated, "without an end"},
		"two programs":             {good + field(502, ""), ErrTwice, "field 502"},
		"program version":          {number(1, 9) + field(502, number(1, 2)), ErrMalformed, "program version 2"},
		"string for a number":      {field(1, "9"), ErrMalformed, "wire type 2, not 0"},
		"attribute twice":          {inside("op", attribute("val", ofType(1)+immediate(3, "\x01"))), ErrTwice, "attribute val"},
		"function twice":           {inside("program", field(2, field(1, "main")+field(2, field(2, "CoreML8")+field(3, field(1, "CoreML8"))))), ErrTwice, "function main"},
		"unknown opset":            {inside("program", field(2, field(1, "f")+field(2, field(2, "CoreML99")))), ErrOpset, "\"CoreML99\""},
		"opset without a block":    {inside("program", field(2, field(1, "f")+field(2, field(2, "CoreML8")))), ErrNoBlock, "CoreML8"},
		"op without a type":        {inside("block", field(3, "")), ErrMalformed, "without a type"},
		"binding of nothing":       {inside("op", field(2, field(1, "x")+field(2, field(1, "")))), ErrMalformed, "neither"},
		"element type":             {inside("op", output(number(1, 99))), ErrMalformed, "element type 99"},
		"rank":                     {inside("op", output(number(1, 10)+number(2, 3))), ErrMalformed, "rank 3 with 0 dimensions"},
		"negative dimension":       {inside("op", output(number(1, 10)+number(2, 1)+field(3, field(1, number(1, -5))))), ErrMalformed, "dimension"},
		"value without contents":   {inside("op", attribute("v", ofType(1))), ErrMalformed, "neither contents nor a blob"},
		"elements of another list": {inside("op", attribute("v", ofType(10)+immediate(2, "\x01"))), ErrMalformed, "elements of fp16 in list 2"},
		"state without a type":     {inside("description", field(13, field(1, "s")+field(3, field(8, "")))), ErrMalformed, "a state without a type"},
		"array of another type":    {inside("description", field(1, field(1, "z")+field(3, field(5, number(2, 7))))), ErrMalformed, "element type 7"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode("dir/model.mlmodel", c.data)
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.text)
			require.ErrorContains(t, err, "dir/model.mlmodel")
		})
	}
}

// TestEveryCutIsRefused shortens a model byte by byte: none of the pieces may be taken for a model, and none may panic.
func TestEveryCutIsRefused(t *testing.T) { // invariant
	data := models(t)["multifunction"]
	for n := range len(data) {
		_, err := Decode("cut", data[:n])
		require.Error(t, err, n)
	}
}

// bombs are inputs that would grow if they were believed.
var bombs = map[string]string{
	"ops":        withMain(field(3, field(1, "CoreML8")+field(2, strings.Repeat(field(3, field(1, "a")), 1<<17)))),
	"inputs":     withMain(strings.Repeat(field(1, ""), 1<<18)),
	"dimensions": withMain(field(1, field(1, "x")+field(2, field(1, strings.Repeat(field(3, ""), 1<<19))))),
	"functions":  number(1, 9) + field(502, number(1, 1)+strings.Repeat(field(2, ""), 1<<18)),
	"ports":      field(2, strings.Repeat(field(1, ""), 1<<18)),
	"longs":      number(1, 9) + field(502, number(1, 1)+field(4, field(1, "v")+field(2, ofType(24)+immediate(5, strings.Repeat("\x00", 1<<20))))),
	"unknown":    strings.Repeat(number(999, 1), 1<<18),
	"nested":     nested(1 << 12),
}

// nested is a type of lists inside lists.
func nested(depth int) string {
	typ := field(1, number(1, 1))
	for range depth {
		typ = field(2, field(1, typ))
	}
	return withMain(field(1, field(1, "x")+field(2, typ)))
}

// withMain is a model with a function of these fields.
func withMain(fields string) string {
	return number(1, 9) + field(502, number(1, 1)+field(2, field(1, "main")+field(2, field(2, "CoreML8")+fields)))
}

// Parts of an op: an attribute, an output whose tensor type has these fields; parts of a value: a scalar type, elements in a list.
func attribute(name, value string) string { return field(5, field(1, name)+field(2, value)) }
func output(tensor string) string         { return field(3, field(1, "y")+field(2, field(1, tensor))) }
func ofType(t int64) string               { return field(2, field(1, number(1, t))) }
func immediate(list int, packed string) string {
	return field(3, field(1, field(list, field(1, packed))))
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
	for name, data := range bombs {
		t.Run(name, func(t *testing.T) {
			var err error
			used := allocated(func() { _, err = Decode("bomb", data) })
			t.Logf("%d bytes: %d allocated, %.120v", len(data), used, err)
			require.LessOrEqual(t, used, uint64(4*len(data)+1<<20))
		})
	}
	for name, data := range models(t) {
		used := allocated(func() { decode(t, data) })
		require.LessOrEqual(t, used, uint64(4*len(data)+1<<20), name)
	}
}

func FuzzDecode(f *testing.F) {
	for _, data := range models(f) {
		f.Add([]byte(data))
	}
	f.Add([]byte(tiny(func(string) string { return field(777, "xyz") })))
	f.Fuzz(func(t *testing.T, data []byte) {
		text := string(data)
		var m *Model
		var err error
		if used := allocated(func() { m, err = Decode("fuzz", text) }); used > uint64(4*len(data)+1<<20) {
			t.Fatalf("%d bytes allocated for %d", used, len(data))
		}
		if err != nil {
			return
		}
		_ = mil.Check(m.Program)
		_ = mil.CheckDescription(m.Program, m.Description)
		again := Encode(m, nil)
		n, err := Decode("again", string(again))
		if err != nil {
			t.Fatalf("what was written is not read: %v", err)
		}
		if d := mil.Diff(m.Program, n.Program); d != "" {
			t.Fatal(d)
		}
		if string(Encode(n, nil)) != string(again) {
			t.Fatal("written twice, a model differs")
		}
	})
}
