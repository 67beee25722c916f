package safetensors

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/quant"
)

// threeShards saves tensors a (5 bytes), b (7), c (3) and d (2) in three shards.
func threeShards(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	u8 := func(name string, n int) quant.Tensor {
		return quant.Tensor{Name: name, DType: quant.U8, Shape: []int{n}, Data: make([]byte, n)}
	}
	for name, tensors := range map[string][]quant.Tensor{
		"m-1.safetensors": {u8("a", 5)}, "m-2.safetensors": {u8("b", 7), u8("c", 3)}, "m-3.safetensors": {u8("d", 2)},
	} {
		require.NoError(t, Write(filepath.Join(dir, name), tensors, map[string]string{"format": "pt"}))
	}
	writeIndex(t, dir, `{"metadata":{"total_parameters":12,"total_size":17},"weight_map":{
		"a":"m-1.safetensors","b":"m-2.safetensors","c":"m-2.safetensors","d":"m-3.safetensors"}}`)
	return dir
}

func writeIndex(t *testing.T, dir, json string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, IndexFile), []byte(json), 0o600))
}

func TestShardsAreOneSet(t *testing.T) { // hand
	dir := threeShards(t)
	s, err := Open(dir)
	require.NoError(t, err)
	defer s.Close()
	require.Equal(t, []string{"a", "b", "c", "d"}, s.Names())
	require.Equal(t, map[string]string{"format": "pt"}, s.Metadata())
	c, err := s.Tensor("c")
	require.NoError(t, err)
	require.Equal(t, []int{3}, c.Shape)
	require.Equal(t, filepath.Join(dir, IndexFile), s.Path())

	require.NoError(t, Write(filepath.Join(dir, ModelFile), nil, nil))
	whole, err := Open(dir)
	require.NoError(t, err)
	require.Empty(t, whole.Names(), "model.safetensors wins over the index")
}

func TestLOAD03MissingAndTruncatedShards(t *testing.T) {
	t.Run("one of three shards is missing", func(t *testing.T) {
		dir := threeShards(t)
		require.NoError(t, os.Remove(filepath.Join(dir, "m-2.safetensors")))
		_, err := Open(dir)
		require.ErrorContains(t, err, IndexFile+": m-2.safetensors: no such file (10 of 17 bytes of tensors are missing)")
	})
	for name, cut := range map[string]int64{"by 1 byte": 1, "by a whole tensor": 3, "by all data": 10} {
		t.Run("shard shortened "+name, func(t *testing.T) {
			dir := threeShards(t)
			path := filepath.Join(dir, "m-2.safetensors")
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.NoError(t, os.Truncate(path, info.Size()-cut))
			_, err = Open(dir)
			require.ErrorContains(t, err, "m-2.safetensors: ")
			require.ErrorContains(t, err, map[int64]string{1: "9 bytes of data, want 10, 1 more", 3: "want 10, 3 more", 10: "want 10, 10 more"}[cut])
		})
	}
	t.Run("tensor of the index is in no shard", func(t *testing.T) {
		dir := threeShards(t)
		require.NoError(t, Write(filepath.Join(dir, "m-3.safetensors"), nil, nil))
		_, err := Open(dir)
		require.ErrorContains(t, err, "m-3.safetensors: d: no such tensor")
	})
	t.Run("tensor in two shards", func(t *testing.T) {
		dir := threeShards(t)
		a := quant.Tensor{Name: "a", DType: quant.U8, Shape: []int{1}, Data: []byte{1}}
		d := quant.Tensor{Name: "d", DType: quant.U8, Shape: []int{1}, Data: []byte{1}}
		require.NoError(t, Write(filepath.Join(dir, "m-3.safetensors"), []quant.Tensor{d, a}, nil))
		_, err := Open(dir)
		require.ErrorContains(t, err, "m-3.safetensors: a: a tensor that "+IndexFile+` places in "m-1.safetensors"`)
	})
}

func TestIndexIsChecked(t *testing.T) {
	for _, c := range []struct{ name, json, want string }{
		{"folder", `{"weight_map":{"a":"sub/m.safetensors"}}`, "without a folder"},
		{"parent", `{"weight_map":{"a":"../m.safetensors"}}`, "without a folder"},
		{"absolute", `{"weight_map":{"a":"/etc/hostname"}}`, "without a folder"},
		{"drive", `{"weight_map":{"a":"c:m.safetensors"}}`, "without a folder"},
		{"backslash", `{"weight_map":{"a":"..\\m.safetensors"}}`, "without a folder"},
		{"empty name", `{"weight_map":{"a":""}}`, "without a folder"},
		{"other file", `{"weight_map":{"a":"pytorch_model.bin"}}`, ".safetensors file"},
		{"tensor twice", `{"weight_map":{"a":"m.safetensors","a":"n.safetensors"}}`, `"a" is there twice`},
		{"no tensors", `{"weight_map":{}}`, "no tensors"},
		{"no map", `{"metadata":{"total_size":"many"}}`, "no tensors"},
		{"number", `{"weight_map":{"a":3}}`, "want a string"},
		{"list", `[]`, "want {"},
		{"two objects", `{"weight_map":{"a":"m.safetensors"}} {}`, "text after"},
		{"cut", `{"weight_map":`, "EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			writeIndex(t, dir, c.json)
			_, err := Open(dir)
			require.ErrorContains(t, err, IndexFile)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"metadata":{"total_size":17},"weight_map":{"a":"m-1.safetensors","b":"../m"}}`))
	f.Add([]byte(`{"weight_map":{"a":"a.safetensors","a":"b.safetensors"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		ix, err := parseIndex("i", text)
		if err != nil {
			return
		}
		for _, name := range ix.shards() {
			require.Equal(t, name, filepath.Base(name), "a shard outside the folder")
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  `, "0123"))
	f.Add(file(`{"__metadata__":{"k":"v"},"a":{"dtype":"Q","shape":[],"data_offsets":[0,0]},"b":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}}`, "0"))
	f.Add(file(`{"a":{"dtype":"U8","shape":[9],"data_offsets":[0,8]}}`, "01234567"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("m", data)
		if err != nil {
			return
		}
		total := 0
		for _, name := range s.Names() {
			total += len(s.tensors[name].data)
			if x, err := s.Tensor(name); err == nil {
				require.Len(t, x.Data, x.Len()*x.DType.Size())
			}
		}
		require.LessOrEqual(t, total, len(data), "a byte belongs to one tensor")
	})
}
