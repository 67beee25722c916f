package gguf

import (
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/tokenizer/gguf/gguftest"
)

// whole is a small file with every type of value and two tensors.
func whole() *gguftest.Builder {
	b := &gguftest.Builder{}
	b.Text("general.architecture", "gemma4").Uint32("general.alignment", 32).Flag("on", 1)
	b.Strings("words", []string{"a", "", "ein drittes"}).Int32s("numbers", []int32{-1, 7}).Float32s("scores", []float32{1.5})
	b.Raw("u8", []byte{0, 0, 0, 0, 9}).Raw("f64", append([]byte{12, 0, 0, 0}, make([]byte, 8)...))
	b.Tensor(gguftest.Tensor{Name: "w", Dims: []uint64{32, 3}, Type: 8}).Tensor(gguftest.Tensor{Name: "v", Dims: []uint64{5}, Offset: 128})
	return b.Data(make([]byte, 128+20))
}

func TestParse(t *testing.T) { // hand
	f, err := Parse("m.gguf", whole().Bytes())
	require.NoError(t, err)
	text, err := f.Text("general.architecture")
	require.NoError(t, err)
	require.Equal(t, "gemma4", text)
	words, err := f.Strings("words")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "", "ein drittes"}, words)
	numbers, err := f.Int32s("numbers")
	require.NoError(t, err)
	require.Equal(t, []int32{-1, 7}, numbers)
	scores, err := f.Float32s("scores")
	require.NoError(t, err)
	require.Equal(t, []float32{1.5}, scores)
	on, err := f.Flag("on")
	require.NoError(t, err)
	require.True(t, on)
	require.Equal(t, []Tensor{{"w", []uint64{32, 3}, 8, 0, 102}, {"v", []uint64{5}, 0, 128, 20}}, f.Tensors)
	require.Equal(t, 3, f.Version)
	_, err = f.Uint32("u8")
	require.ErrorContains(t, err, "m.gguf: u8: uint8, want uint32")
}

func TestHOST10TensorShapes(t *testing.T) { // hand
	for name, c := range map[string]struct {
		tensor gguftest.Tensor
		want   string
	}{
		"product wraps to 0":          {gguftest.Tensor{Dims: []uint64{1 << 63, 2}}, "size of less than 2^63"},
		"product wraps to 4":          {gguftest.Tensor{Dims: []uint64{1<<62 + 1, 4}}, "size of less than 2^63"},
		"second dimension patched":    {gguftest.Tensor{Dims: []uint64{64, 1<<42 + 1}}, "inside a file"},
		"bytes wrap, elements do not": {gguftest.Tensor{Dims: []uint64{1 << 61, 2}}, "size of less than 2^63"},
		"dimension of 0":              {gguftest.Tensor{Dims: []uint64{0, 5}}, "dimensions of at least 1"},
		"no dimensions":               {gguftest.Tensor{}, "0 dimensions, want 1 to 4"},
		"5 dimensions":                {gguftest.Tensor{Dims: []uint64{1, 1, 1, 1, 1}}, "5 dimensions"},
		"9 dimensions":                {gguftest.Tensor{NDims: 9, Dims: []uint64{1}}, "9 dimensions"},
		"2^32−1 dimensions":           {gguftest.Tensor{NDims: math.MaxUint32, Dims: []uint64{1}}, "4294967295 dimensions"},
		"row no multiple of a block":  {gguftest.Tensor{Dims: []uint64{33, 2}, Type: 8}, "multiple of the block of 32"},
		"behind the end":              {gguftest.Tensor{Dims: []uint64{3}, Offset: 1 << 40}, "inside a file"},
		"offset wraps":                {gguftest.Tensor{Dims: []uint64{3}, Offset: math.MaxUint64 - 31}, "inside a file"},
		"off the alignment":           {gguftest.Tensor{Dims: []uint64{3}, Offset: 4}, "multiple of 32"},
	} {
		t.Run("HOST-10 "+name, func(t *testing.T) {
			c.tensor.Name = "blk.0.w"
			_, err := Parse("m.gguf", (&gguftest.Builder{}).Tensor(c.tensor).Data(make([]byte, 64)).Bytes())
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, `m.gguf: tensor "blk.0.w"`)
		})
	}
	_, err := Parse("m.gguf", (&gguftest.Builder{}).Tensor(gguftest.Tensor{Name: "w", Dims: []uint64{7}, Type: 99}).Bytes())
	require.NoError(t, err, "a type of the future does not hide the vocabulary")
	twice := gguftest.Tensor{Name: "w", Dims: []uint64{1}}
	_, err = Parse("m.gguf", (&gguftest.Builder{}).Tensor(twice).Tensor(twice).Data(make([]byte, 64)).Bytes())
	require.ErrorContains(t, err, "the name twice")
}

func TestHOST11Metadata(t *testing.T) { // hand
	nested := []byte{9, 0, 0, 0}
	for range 10_000 {
		nested = append(nested, gguftest.Array(9, 1)[4:]...)
	}
	raw := func(value []byte) *gguftest.Builder { return (&gguftest.Builder{}).Raw("k", value) }
	for name, c := range map[string]struct {
		file *gguftest.Builder
		want string
	}{
		"alignment 0":              {(&gguftest.Builder{}).Uint32("general.alignment", 0), "general.alignment: 0, want a power of two"},
		"alignment 3":              {(&gguftest.Builder{}).Uint32("general.alignment", 3), "general.alignment: 3"},
		"alignment 2^30":           {(&gguftest.Builder{}).Uint32("general.alignment", 1<<30), "general.alignment: 1073741824"},
		"alignment of int32":       {(&gguftest.Builder{}).Raw("general.alignment", []byte{5, 0, 0, 0, 32, 0, 0, 0}), "general.alignment: int32, want uint32"},
		"string of 2^40":           {raw(append([]byte{8, 0, 0, 0}, 0, 0, 0, 0, 0, 1, 0, 0)), "1099511627776 bytes of text"},
		"string of 2^64−1":         {raw([]byte{8, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255}), "18446744073709551615 bytes"},
		"array of 2^40 bool":       {raw(gguftest.Array(7, 1<<40)), "1099511627776 elements"},
		"array of 2^61 float64":    {raw(gguftest.Array(12, 1<<61)), "2305843009213693952 elements"},
		"array of 2^40 strings":    {raw(gguftest.Array(8, 1<<40)), "1099511627776 elements"},
		"arrays 10,000 deep":       {raw(nested), "an array of arrays"},
		"array of type 77":         {raw(gguftest.Array(77, 0)), "an array of type 77"},
		"type 13":                  {raw([]byte{13, 0, 0, 0}), "type 13"},
		"2^60 keys":                {&gguftest.Builder{ClaimKeys: 1 << 60}, "1152921504606846976 keys"},
		"2^60 tensors":             {&gguftest.Builder{ClaimTensors: 1 << 60}, "1152921504606846976 tensors"},
		"empty key":                {(&gguftest.Builder{}).Uint32("", 1), "an empty key"},
		"key twice":                {(&gguftest.Builder{}).Uint32("k", 1).Text("k", "x"), "k: the key twice"},
		"version 1, empty strings": {(&gguftest.Builder{Version: 1}).Text("k", ""), "version 1, want 2 or 3"},
		"version 2^31":             {&gguftest.Builder{Version: 1 << 31}, "big-endian"},
		"version 9":                {&gguftest.Builder{Version: 9}, "version 9"},
		"big-endian":               {&gguftest.Builder{Version: 3 << 24}, "a big-endian file"},
	} {
		t.Run("HOST-11 "+name, func(t *testing.T) {
			data := c.file.Bytes()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Parse("m.gguf", data)
			runtime.ReadMemStats(&after)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "m.gguf: ")
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<10+16*len(data)), "memory follows the file")
		})
	}
	_, err := Parse("m.gguf", []byte("GGML"))
	require.ErrorContains(t, err, `"GGML", want "GGUF"`)
}

func TestHOST11TruncatedAtEveryByte(t *testing.T) { // invariant
	data := whole().Bytes()
	for n := range data {
		_, err := Parse("m.gguf", data[:n])
		require.Error(t, err, "%d of %d bytes", n, len(data))
	}
}

func FuzzParse(f *testing.F) {
	f.Add(whole().Bytes())
	f.Add((&gguftest.Builder{}).Bytes())
	f.Add((&gguftest.Builder{ClaimKeys: 1 << 40}).Strings("k", []string{"a"}).Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("fuzz", data)
		if err != nil {
			return
		}
		for key := range file.values {
			file.Text(key)
			file.Flag(key)
			file.Uint32(key)
			file.Strings(key)
			file.Int32s(key)
			file.Float32s(key)
		}
	})
}
