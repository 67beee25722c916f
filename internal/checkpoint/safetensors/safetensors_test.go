package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/quant"
)

// file is a safetensors file with the given JSON and data.
func file(json, data string) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(json)))
	return append(append(b, json...), data...)
}

// one is the JSON of a file with one tensor "a".
func one(dtype, shape, offsets string) string {
	return fmt.Sprintf(`{"a":{"dtype":%q,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
}

func refused(t *testing.T, data []byte, parts ...string) {
	t.Helper()
	_, err := Parse("m.safetensors", data)
	require.Error(t, err)
	for _, part := range append(parts, "m.safetensors") {
		require.ErrorContains(t, err, part)
	}
}

func TestHOST01HeaderLength(t *testing.T) {
	body := one("F32", "[1]", "[0,4]") + "0123"
	for _, c := range []struct {
		name   string
		length uint64
		want   []string
	}{
		{"2^64-1", math.MaxUint64, []string{"18446744073709551615", "at most 100000000"}},
		{"wraps with +5", 0xfffffffffffffffb, []string{"18446744073709551611"}},
		{"2^63", 1 << 63, []string{"9223372036854775808"}},
		{"one above the limit", 100_000_001, []string{"100000001"}},
		{"file size minus 7", uint64(len(body)) + 1, []string{fmt.Sprint(len(body) + 1), "1 more bytes"}},
		{"0", 0, []string{"header length 0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			refused(t, append(binary.LittleEndian.AppendUint64(nil, c.length), body...), c.want...)
		})
	}
	t.Run("7-byte file", func(t *testing.T) { refused(t, []byte("\x01\x00\x00\x00\x00\x00\x00"), "7 bytes") })
	t.Run("empty file", func(t *testing.T) { refused(t, nil, "0 bytes") })
}

func TestHOST03Offsets(t *testing.T) {
	for _, c := range []struct{ name, offsets, want string }{
		{"reversed", "[8,4]", "run backwards"},
		{"negative", "[-4,4]", "got -4"},
		{"end at 2^64-1", "[0,18446744073709551615]", "18446744073709551615 bytes"},
		{"beyond 2^63", "[9223372036854775808,9223372036854775812]", "hole of 9223372036854775808 bytes"},
		{"above 2^64", "[0,18446744073709551620]", "18446744073709551620"},
		{"decimal point", "[0.0,4.0]", "got 0.0"},
		{"exponent", "[1e3,1004]", "got 1e3"},
		{"three", "[0,4,8]", "more than 2"},
		{"one", "[4]", "two data_offsets"},
		{"null", "null", "want ["},
		{"strings", `["0","4"]`, "want an integer"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, file(one("F32", "[1]", c.offsets), "0123"), "a", c.want) })
	}
	t.Run("range beyond the file, unknown type", func(t *testing.T) {
		refused(t, file(one("Q9", "[1]", "[0,18446744073709551615]"), "0123"), "4 bytes of data", "18446744073709551611 more")
	})
}

func TestShapeArithmeticIsChecked(t *testing.T) {
	for _, c := range []struct{ name, dtype, shape, want string }{
		{"product 2^64", "U8", "[4294967296,4294967296]", "more elements than can be addressed"},
		{"product wraps to 4", "F32", "[4611686018427387905,4]", "more elements than can be addressed"},
		{"bit count wraps", "F64", "[576460752303423488]", "elements of 64 bits"},
		{"dim 2^63", "U8", "[9223372036854775808]", "more elements than can be addressed"},
		{"too small", "F32", "[2]", "needs 2 elements"},
		{"half a byte", "F4", "[7]", "needs 7 elements of 4 bits"},
		{"negative", "F32", "[-1]", "got -1"},
		{"33 axes", "F32", "[" + strings.TrimSuffix(strings.Repeat("1,", 33), ",") + "]", "more than 32"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, file(one(c.dtype, c.shape, "[0,4]"), "0123"), c.want) })
	}
}

func TestHOST05NamesOverlapsHoles(t *testing.T) {
	const a, b = `"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}`, `"b":{"dtype":"U8","shape":[8],"data_offsets":[%d,%d]}`
	pair := func(lo, hi int) string { return "{" + a + "," + fmt.Sprintf(b, lo, hi) + "}" }
	for _, c := range []struct {
		name, json string
		data       int
		want       []string
	}{
		{"same name twice", "{" + a + `,"a":{"dtype":"U8","shape":[4],"data_offsets":[8,12]}}`, 12, []string{`"a" is there twice`}},
		{"same name twice, once escaped", "{" + a + `,"\u0061":{"dtype":"U8","shape":[4],"data_offsets":[8,12]}}`, 12, []string{`"a" is there twice`}},
		{"field twice", `{"a":{"dtype":"U8","dtype":"I8","shape":[0],"data_offsets":[0,0]}}`, 0, []string{`"dtype" is there twice`}},
		{"overlap", pair(4, 12), 12, []string{"b: bytes [4, 12)", "no overlap with a, which ends at byte 8"}},
		{"same bytes", pair(0, 8), 8, []string{"no overlap"}},
		{"hole", pair(9, 17), 17, []string{"b: bytes [9, 17)", "no hole of 1 bytes after a"}},
		{"hole at the start", `{"a":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}}`, 4, []string{"hole of 3 bytes after the start"}},
		{"trailing bytes", pair(8, 16), 19, []string{"3 bytes after the last tensor"}},
		{"metadata with a number", `{"__metadata__":{"format":1}}`, 0, []string{"__metadata__", "format", "want a string"}},
		{"metadata null", `{"__metadata__":null}`, 0, []string{"__metadata__"}},
		{"metadata twice", `{"__metadata__":{},"__metadata__":{}}`, 0, []string{"twice"}},
		{"field in capitals", `{"a":{"DTYPE":"U8","shape":[0],"data_offsets":[0,0]}}`, 0, []string{`"DTYPE": unknown field`}},
		{"invalid UTF-8", "{\"a\xff\":{}}", 0, []string{"UTF-8"}},
		{"cut JSON", `{"a":{"dtype":"U8"`, 0, []string{"EOF"}},
		{"not an object", `{"a":7}`, 0, []string{"got 7"}},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, file(c.json, strings.Repeat("x", c.data)), c.want...) })
	}
}

func TestLOAD05PaddingAndEmptyTensors(t *testing.T) {
	json := one("F32", "[1]", "[0,4]")
	for _, bad := range []string{"\x00\x00\x00", "\n", "\t", "{}"} {
		refused(t, file(json+bad, "0123"), "padding of spaces only")
	}
	refused(t, file(" "+json, "0123"), `starts with "{"`)
	s, err := Parse("", file(json+"   ", "0123")) // 3 spaces: the data start at an odd address too
	require.NoError(t, err)
	a, err := s.Tensor("a")
	require.NoError(t, err)
	require.Equal(t, quant.Tensor{Name: "a", DType: quant.F32, Shape: []int{1}, Data: []byte("0123")}, a)

	s, err = Parse("", file(`{"none":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},`+
		`"end":{"dtype":"F16","shape":[3,0],"data_offsets":[4,4]}}`, "\x00\x00\x80\x3f"))
	require.NoError(t, err)
	require.Equal(t, []string{"a", "end", "none"}, s.Names())
	end, err := s.Tensor("end")
	require.NoError(t, err)
	require.Equal(t, 0, end.Len())
	a, err = s.Tensor("a")
	require.NoError(t, err)
	x, err := a.Floats()
	require.NoError(t, err)
	require.Equal(t, []float32{1}, x)
}

func TestUnknownTypesAreRefusedWhenAsked(t *testing.T) {
	s, err := Parse("m", file(`{"f8":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]},"new":{"dtype":"Q3","shape":[5],"data_offsets":[2,4]},`+
		`"ok":{"dtype":"BOOL","shape":[1],"data_offsets":[4,5]}}`, "abcd\x01"))
	require.NoError(t, err)
	for name, dtype := range map[string]string{"f8": "F8_E4M3", "new": "Q3"} {
		require.True(t, s.Has(name))
		_, err = s.Tensor(name)
		require.ErrorContains(t, err, "m: "+name+": element type "+dtype+", want one of BF16, BOOL")
	}
	ok, err := s.Tensor("ok")
	require.NoError(t, err)
	require.Equal(t, quant.Bool, ok.DType)
	_, err = s.Tensor("missing")
	require.ErrorContains(t, err, "missing: no such tensor")
}

func TestNUM11BytesPassUnchanged(t *testing.T) { // hand: subnormals, NaN and infinities are not touched
	words := []byte{0x01, 0x00, 0x7f, 0x00, 0x01, 0x80, 0xc0, 0x7f, 0x80, 0x7f, 0x7f, 0xff}
	path := filepath.Join(t.TempDir(), "m.safetensors")
	require.NoError(t, Write(path, []quant.Tensor{{Name: "w", DType: quant.BF16, Shape: []int{3, 2}, Data: words}}, nil))
	s, err := Open(path)
	require.NoError(t, err)
	defer s.Close()
	w, err := s.Tensor("w")
	require.NoError(t, err)
	require.Equal(t, words, w.Data)
}

func TestWriteReadsBack(t *testing.T) { // invariant
	tensors := []quant.Tensor{
		{Name: "odd \"name\"", DType: quant.U8, Shape: []int{3}, Data: []byte{1, 2, 3}},
		{Name: "scalar", DType: quant.F64, Shape: nil, Data: []byte("12345678")},
		{Name: "none", DType: quant.I64, Shape: []int{2, 0, 5}, Data: []byte{}},
		{Name: "bf", DType: quant.BF16, Shape: []int{1, 2}, Data: []byte("abcd")},
	}
	dir := t.TempDir()
	path := filepath.Join(dir, ModelFile)
	require.NoError(t, Write(path, tensors, map[string]string{"golden": "yes"}))
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Zero(t, binary.LittleEndian.Uint64(raw)%headerAlign)

	s, err := Open(dir)
	require.NoError(t, err)
	defer s.Close()
	require.Equal(t, path, s.Path())
	require.Equal(t, map[string]string{"golden": "yes"}, s.Metadata())
	for _, want := range tensors {
		got, err := s.Tensor(want.Name)
		require.NoError(t, err)
		require.Equal(t, want.DType, got.DType)
		require.Equal(t, append([]int{}, want.Shape...), got.Shape)
		require.Equal(t, want.Data, got.Data)
		shape, err := s.Describe(want.Name)
		require.NoError(t, err)
		require.Nil(t, shape.Data)
		require.Equal(t, got.Shape, shape.Shape)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "no temporary file stays")
}

func TestWriteOfNothingAndToNowhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "empty.safetensors")
	require.NoError(t, Write(path, nil, nil))
	s, err := Open(path)
	require.NoError(t, err)
	require.Empty(t, s.Names())
	require.ErrorContains(t, Write(filepath.Join(path, "sub", "x"), nil, nil), "sub")
	a := quant.Tensor{Name: "a", DType: quant.U8, Shape: []int{1}, Data: []byte{1}}
	require.Panics(t, func() { Write(path, []quant.Tensor{a, a}, nil) })
	a.Shape = []int{2}
	require.Panics(t, func() { Write(path, []quant.Tensor{a}, nil) })
}

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestAllocationIsBoundedByFileSize(t *testing.T) {
	huge := append(binary.LittleEndian.AppendUint64(nil, 99_999_999), "{}"...)
	many := func(entry string) []byte {
		var b strings.Builder
		for i := range 20_000 {
			fmt.Fprintf(&b, entry, i)
		}
		return file("{"+strings.TrimSuffix(b.String(), ",")+"}", "")
	}
	for name, data := range map[string][]byte{
		"promised header": huge,
		"empty tensors":   many(`"%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},`),
		"empty objects":   many(`"%d":{},`),
		"one long shape":  file(`{"a":{"dtype":"U8","shape":[`+strings.Repeat("0,", 1<<18)+`0],"data_offsets":[0,0]}}`, ""),
		"deep nesting":    file(`{"a":`+strings.Repeat("[", 1<<18), ""),
	} {
		t.Run(name, func(t *testing.T) {
			got := allocated(func() { _, _ = Parse("", data) })
			require.Less(t, got, uint64(40*len(data)+1<<16), "%d bytes for a file of %d", got, len(data))
		})
	}
}
