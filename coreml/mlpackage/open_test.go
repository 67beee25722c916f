package mlpackage

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/coreml/mil"
	"anelab/coreml/mil/blob"
	"anelab/coreml/mlpackage/spec"
	"anelab/internal/format"
	"anelab/internal/shareddata"
)

// fixture is a package of testdata.
func fixture(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(shareddata.ModuleRoot(t), "testdata", "coreml", "ops", name+".mlpackage")
}

// copyOf is a copy of a package of testdata that a test may spoil.
func copyOf(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name+".mlpackage")
	require.NoError(t, os.CopyFS(dir, os.DirFS(fixture(t, name))))
	return dir
}

func open(t testing.TB, path string) *Package {
	t.Helper()
	p, err := Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

const (
	modelPath  = "Data/com.apple.CoreML/model.mlmodel"
	weightPath = "Data/com.apple.CoreML/weights/weight.bin"
)

func TestOpenReadsWhatConvertersWrite(t *testing.T) { // oracle: coremltools 9.0 wrote the packages
	p := open(t, fixture(t, "state_slice_update_attention"))
	require.Equal(t, 9, p.Program.SpecVersion)
	main := p.Program.Function("main")
	require.Equal(t, mil.CoreML8, main.Opset)
	require.Equal(t, []mil.Variable{{Name: "cache", Type: mil.StateOf(mil.TensorOf(mil.Float16, 2, 1, 6, 32))}}, main.States())
	require.Equal(t, []int64{2, 1, 6, 32}, p.Description.States[0].Array.Shape)

	p = open(t, fixture(t, "multifunction"))
	require.Equal(t, "decode_q1", p.Description.DefaultFunction)
	require.Len(t, p.Program.Functions, 2)
	var offsets []uint64
	for _, f := range p.Program.Functions {
		offsets = append(offsets, f.Body.Producers()["y_weight_0"].Attribute("val").Blob().Offset)
	}
	require.Equal(t, []uint64{64, 64}, offsets, "functions share weights")

	p = open(t, fixture(t, "flex_range_dim"))
	require.Equal(t, &mil.Flexible{Default: []int64{1, 4, 16}, Ranges: []mil.Range{{Min: 1, Max: 1}, {Min: 1, Max: 12}, {Min: 16, Max: 16}}}, p.Program.Functions[0].Input("x").Flexible)

	p = open(t, fixture(t, "lut_w4_odd_count"))
	lut := slices.IndexFunc(p.Program.Functions[0].Body.Ops, (*mil.Op).IsConstexpr)
	indices := p.Program.Functions[0].Body.Ops[lut].Input("indices")[0].Value
	n, _ := indices.Type.Count()
	require.Equal(t, int64(1), n%2, "an odd number of 4-bit indices")
	b, err := indices.Bytes()
	require.NoError(t, err)
	require.Len(t, b, int(n+1)/2)
	again, err := indices.Bytes()
	require.NoError(t, err)
	require.Same(t, &b[0], &again[0], "bytes are those of the mapped file")
	require.NoError(t, p.Close())
	_, err = indices.Bytes()
	require.ErrorContains(t, err, "closed")
}

func TestEveryPackageOpens(t *testing.T) { // oracle: coremltools 9.0 and others wrote the packages
	n, ops, blobs := 0, 0, 0
	for _, pattern := range []string{"coreml/ops/*.mlpackage", "coreml/chunks*/*/*.mlpackage", "coreml/miltext/pairs/*.mlpackage"} {
		for _, file := range shareddata.Cases(t, pattern) {
			p := open(t, file)
			for _, f := range p.Program.Functions {
				for op := range f.Body.All() {
					ops++
					for _, v := range op.Values() {
						b, err := v.Bytes()
						if v.Blob() != nil {
							require.NoError(t, err)
							require.NotEmpty(t, b)
							blobs++
						}
					}
				}
			}
			n++
			require.NoError(t, p.Close())
		}
	}
	t.Logf("%d packages, %d ops, %d constants in weights files", n, ops, blobs)
}

// TestEveryCorruptPackageIsRefused wants each fault named for what it is, at the place where it is.
func TestEveryCorruptPackageIsRefused(t *testing.T) { // oracle: the faults were planted by the generator of the data
	want := map[string]error{
		"bad_sentinel": blob.ErrSentinel, "bad_storage_version": blob.ErrVersion, "blob_count_too_high": blob.ErrTruncated, "blob_dtype_mismatch": blob.ErrType,
		"blob_size_overflow": blob.ErrTruncated, "declared_dtype_mismatch": mil.ErrDeclared, "declared_shape_mismatch": mil.ErrDeclared, "defined_twice": mil.ErrDefinedTwice,
		"description_dtype_mismatch": mil.ErrDescription, "description_name_mismatch": mil.ErrDescription, "empty_weights": blob.ErrTruncated,
		"lut_entries_not_index_bits": mil.ErrShape, "lut_type_smaller_than_blob": blob.ErrSize, "manifest_bad_root": ErrManifest, "manifest_bad_version": ErrManifest,
		"manifest_path_escape": ErrEscape, "manifest_without_weights": ErrUnlisted, "missing_model": ErrItem, "missing_output": mil.ErrOutput, "offset_beyond_file": blob.ErrOffset,
		"op_too_new": mil.ErrOpTooNew, "opset_too_new_for_spec": mil.ErrOpsetTooNew, "opset_without_block": spec.ErrNoBlock, "state_not_described": mil.ErrDescription,
		"truncated_proto": spec.ErrTruncated, "truncated_weights": blob.ErrTruncated, "unknown_op": mil.ErrUnknownOp, "use_before_definition": mil.ErrOrder, "wrong_offset": blob.ErrOffset,
	}
	seen := map[string]string{}
	for _, file := range shareddata.Cases(t, "coreml/corrupt/*.mlpackage") {
		name := strings.TrimSuffix(filepath.Base(file), ".mlpackage")
		_, err := Open(file)
		require.Error(t, err, name)
		if rule := want[name]; rule != nil {
			require.ErrorIs(t, err, rule, name)
		}
		var f *format.Error
		require.True(t, errors.As(err, &f), name)
		require.Contains(t, f.Path, file, name)
		require.Empty(t, seen[err.Error()], "each says something else")
		seen[err.Error()] = name
	}
	t.Logf("%d corrupt packages refused", len(seen))
}

func TestCHK11FormsAndPartsAreToldApart(t *testing.T) { // hand
	dir := t.TempDir()
	compiled := filepath.Join(dir, "a.mlmodelc")
	require.NoError(t, os.Mkdir(compiled, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(compiled, "model.mil"), nil, 0o600))
	_, err := Open(compiled)
	require.ErrorIs(t, err, ErrNotPackage)
	require.ErrorContains(t, err, "open it as .mlmodelc")

	single := filepath.Join(dir, "old.mlmodel")
	require.NoError(t, os.WriteFile(single, nil, 0o600))
	_, err = Open(single)
	require.ErrorContains(t, err, "a package is a folder")
	_, err = Open(filepath.Join(dir, "nothing"))
	require.ErrorIs(t, err, os.ErrNotExist)

	p := copyOf(t, "gemma_mlp_block")
	require.NoError(t, os.RemoveAll(filepath.Join(p, filepath.Dir(weightPath))))
	_, err = Open(p)
	require.ErrorIs(t, err, ErrItem)
	require.ErrorContains(t, err, "no Data/com.apple.CoreML/weights/weight.bin")

	p = copyOf(t, "gemma_mlp_block")
	data, err := os.ReadFile(filepath.Join(p, weightPath))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(p, weightPath), data[:len(data)/2], 0o600))
	_, err = Open(p)
	require.ErrorIs(t, err, blob.ErrTruncated)
}

func TestHOST12ManifestPathsStayInside(t *testing.T) { // hand
	for name, c := range map[string]struct {
		spoil func(m map[string]any, items map[string]any)
		want  error
	}{
		"path ../../x": {func(_, items map[string]any) { set(items, "author", "../..", "name", "x", "path", "../../x") }, ErrEscape},
		"path /etc/hostname": {func(_, items map[string]any) {
			set(items, "author", "/etc", "name", "hostname", "path", "/etc/hostname")
		}, ErrEscape},
		"path inside and out": {func(_, items map[string]any) {
			set(items, "author", "com.apple.CoreML/../..", "name", "x", "path", "com.apple.CoreML/../../x")
		}, ErrEscape},
		"path with backslashes": {func(_, items map[string]any) { set(items, "author", `..\..`, "name", "x", "path", `..\../x`) }, ErrEscape},
		"path with a drive":     {func(_, items map[string]any) { set(items, "author", "C:", "name", "x", "path", "C:/x") }, ErrEscape},
		"path empty":            {func(_, items map[string]any) { set(items, "author", "", "name", "", "path", "") }, ErrEscape},
		"path .":                {func(_, items map[string]any) { set(items, "author", "", "name", ".", "path", ".") }, ErrEscape},
		"path of another name":  {func(_, items map[string]any) { set(items, "name", "other") }, ErrManifest},
		"absent item":           {func(_, items map[string]any) { set(items, "name", "other", "path", "com.apple.CoreML/other") }, ErrItem},
		"no path":               {func(_, items map[string]any) { set(items, "path", nil) }, ErrManifest},
		"path that is a number": {func(_, items map[string]any) { set(items, "path", 7) }, ErrManifest},
		"root of no item":       {func(m, _ map[string]any) { m["rootModelIdentifier"] = "00000000" }, ErrManifest},
		"no root":               {func(m, _ map[string]any) { delete(m, "rootModelIdentifier") }, ErrManifest},
		"no items":              {func(m, _ map[string]any) { delete(m, "itemInfoEntries") }, ErrManifest},
		"items that are a list": {func(m, _ map[string]any) { m["itemInfoEntries"] = []any{} }, ErrManifest},
		"two items of one path": {func(_, items map[string]any) { items["other"] = items[first(items)] }, ErrManifest},
		"version 1.0":           {func(m, _ map[string]any) { m["fileFormatVersion"] = "1.0" }, ErrManifest},
		"version 1.0.x":         {func(m, _ map[string]any) { m["fileFormatVersion"] = "1.0.x" }, ErrManifest},
		"version 2.0.0":         {func(m, _ map[string]any) { m["fileFormatVersion"] = "2.0.0" }, ErrManifest},
		"version 1.0.1":         {func(m, _ map[string]any) { m["fileFormatVersion"] = "1.0.1" }, ErrManifest},
		"version -1.0.0":        {func(m, _ map[string]any) { m["fileFormatVersion"] = "-1.0.0" }, ErrManifest},
		"no version":            {func(m, _ map[string]any) { delete(m, "fileFormatVersion") }, ErrManifest},
		"version 0.0.1":         {func(m, _ map[string]any) { m["fileFormatVersion"] = "0.0.1" }, nil},
		"version 0.9.9":         {func(m, _ map[string]any) { m["fileFormatVersion"] = "0.9.9" }, nil},
		"unchanged":             {func(_, _ map[string]any) {}, nil},
	} {
		t.Run("HOST-12 "+name, func(t *testing.T) {
			p := copyOf(t, "multifunction")
			file := filepath.Join(p, manifestName)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var m map[string]any
			require.NoError(t, json.Unmarshal(text, &m))
			c.spoil(m, m["itemInfoEntries"].(map[string]any))
			text, err = json.Marshal(m)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, text, 0o600))
			got, err := Open(p)
			if c.want == nil {
				require.NoError(t, err)
				require.NoError(t, got.Close())
				return
			}
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, file)
		})
	}
}

func first(items map[string]any) string {
	var keys []string
	for k := range items {
		keys = append(keys, k)
	}
	return slices.Min(keys)
}

// set changes keys of the weights item.
func set(items map[string]any, pairs ...any) {
	for _, it := range items {
		item := it.(map[string]any)
		if item["name"] != "weights" {
			continue
		}
		for i := 0; i < len(pairs); i += 2 {
			item[pairs[i].(string)] = pairs[i+1]
		}
		return
	}
}

func TestHOST12LinksDoNotLeadOutside(t *testing.T) { // hand
	p := copyOf(t, "multifunction")
	outside := filepath.Join(filepath.Dir(p), "outside")
	weights := filepath.Join(p, filepath.Dir(weightPath))
	require.NoError(t, os.Rename(weights, outside))
	if err := os.Symlink(outside, weights); err != nil {
		t.Skip("no symbolic links here")
	}
	_, err := Open(p)
	require.ErrorIs(t, err, ErrItem)
}

func TestHOST12LongManifests(t *testing.T) { // hand
	_, err := ParseManifest("m", []byte(strings.Repeat(" ", mostManifest+1)))
	require.ErrorIs(t, err, ErrManifest)
	_, err = ParseManifest("m", []byte("{"))
	require.ErrorIs(t, err, ErrManifest)
}

func FuzzManifest(f *testing.F) {
	text, err := os.ReadFile(filepath.Join(fixture(f, "multifunction"), manifestName))
	require.NoError(f, err)
	f.Add(text)
	f.Add([]byte(`{"fileFormatVersion":"1.0.0","itemInfoEntries":{"a":{"path":"../x","author":"..","name":"x","description":""}},"rootModelIdentifier":"a"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseManifest("fuzz", data)
		if err != nil {
			return
		}
		for _, it := range m.Items {
			if !filepath.IsLocal(filepath.FromSlash(it.Path)) || strings.Contains(it.Path, "..") && !contained(it.Path) {
				t.Fatalf("path %q", it.Path)
			}
		}
		again, err := ParseManifest("again", m.encode())
		if err != nil {
			t.Fatal(err)
		}
		require.Equal(t, m, again)
	})
}
