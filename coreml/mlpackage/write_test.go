package mlpackage

import (
	"bytes"
	"context"
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
	"anelab/coreml/miltext"
	"anelab/internal/shareddata"
)

func read(t testing.TB, parts ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(parts...))
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	require.NoError(t, err)
	return string(data)
}

// write writes a package and opens it again.
func write(t testing.TB, p *Package) *Package {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.mlpackage")
	require.NoError(t, Write(context.Background(), out, p, nil))
	return open(t, out)
}

// requireSame wants two packages that mean the same and have the same weights.
func requireSame(t testing.TB, a, b *Package) {
	t.Helper()
	require.Empty(t, mil.Diff(a.Program, b.Program))
	require.Equal(t, a.Program.SpecVersion, b.Program.SpecVersion)
	require.Equal(t, a.Description, b.Description)
	require.True(t, read(t, a.Path, weightPath) == read(t, b.Path, weightPath), "weights")
}

func TestReadAndWrittenPackagesAreTheSame(t *testing.T) { // invariant
	n := 0
	for _, pattern := range []string{"coreml/ops/*.mlpackage", "coreml/chunks*/*/*.mlpackage", "coreml/miltext/pairs/*.mlpackage"} {
		for _, file := range shareddata.Cases(t, pattern) {
			a := open(t, file)
			b := write(t, a)
			requireSame(t, a, b)
			require.Equal(t, a.Manifest, b.Manifest)
			n++
			require.NoError(t, a.Close())
			require.NoError(t, b.Close())
		}
	}
	t.Logf("%d packages read, written and read again", n)
}

// held is the bytes of a blob as data that may be anywhere.
type held struct{ b []byte }

func (h *held) Bytes() ([]byte, error) { return h.b, nil }

// detach makes a package forget where its weights were. Blobs that ops share stay shared.
func detach(t testing.TB, p *Package) *Package {
	t.Helper()
	shared := map[uint64]*held{}
	for _, f := range p.Program.Functions {
		for op := range f.Body.All() {
			for _, v := range op.Values() {
				b := v.Blob()
				if b == nil {
					continue
				}
				if shared[b.Offset] == nil {
					data, err := b.Bytes()
					require.NoError(t, err)
					shared[b.Offset] = &held{bytes.Clone(data)}
				}
				v.Content = shared[b.Offset]
			}
		}
	}
	return &Package{Program: p.Program, Description: p.Description}
}

// TestWeightsWrittenAnewAreThoseOfTheConverter: order, alignment, types, padding bits, sharing.
func TestWeightsWrittenAnewAreThoseOfTheConverter(t *testing.T) { // oracle: coremltools 9.0 wrote the files
	files, err := filepath.Glob(fixture(t, "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			a := open(t, file)
			b := write(t, detach(t, open(t, file)))
			requireSame(t, a, b)
		})
	}
	if testing.Short() {
		return
	}
	for _, file := range shareddata.Cases(t, "coreml/ops/*.mlpackage") {
		b := write(t, detach(t, open(t, file)))
		require.True(t, read(t, file, weightPath) == read(t, b.Path, weightPath), file)
	}
}

// small is a package made from nothing.
func small(t testing.TB) *Package {
	t.Helper()
	p, _, err := miltext.Parse("t", `program(1.3) { func main<ios18>(tensor<fp16, [2, 3]> x) {
		tensor<fp16, [5, 3]> w = const()[name = string("w"), val = tensor<fp16, [5, 3]>(BLOBFILE(path = string("@model_path/weights/weight.bin"), offset = uint64(0)))];
		tensor<fp16, [2, 5]> y = linear(x = x, weight = w)[name = string("y")]; } -> (y); }`)
	require.NoError(t, err)
	p.SpecVersion = 9
	p.Functions[0].Body.Ops[0].Attribute("val").Content = &held{[]byte("123456789012345678901234567890")}
	port := func(name string, shape ...int64) []mil.Feature {
		return []mil.Feature{{Name: name, Kind: mil.ArrayPort, Array: &mil.ArrayFeature{DType: mil.Float16, Shape: shape}}}
	}
	return &Package{Program: p, Description: &mil.Description{Interface: mil.Interface{Inputs: port("x", 2, 3), Outputs: port("y", 2, 5)}}}
}

func TestWriteFromNothing(t *testing.T) { // hand
	p := small(t)
	a, b := write(t, p), write(t, p)
	require.Len(t, read(t, a.Path, weightPath), 64+64+30)
	for _, name := range []string{manifestName, modelPath, weightPath} {
		require.Equal(t, read(t, a.Path, name), read(t, b.Path, name), "equal packages are equal in every byte")
	}
	require.Regexp(t, `^\{
    "fileFormatVersion": "1.0.0",
    "itemInfoEntries": \{
        "[-0-9a-f]{36}": \{
            "author": "com.apple.CoreML",`, read(t, a.Path, manifestName))
	require.Len(t, a.Manifest.Items, 2)
	v := a.Program.Functions[0].Body.Ops[0].Attribute("val")
	require.Equal(t, &mil.Blob{File: weightsPath, Offset: 64}, &mil.Blob{File: v.Blob().File, Offset: v.Blob().Offset})
	require.IsType(t, &held{}, p.Program.Functions[0].Body.Ops[0].Attribute("val").Content, "the program that was written is as it was")
}

func TestWriteReplacesPackagesOnly(t *testing.T) { // hand
	dir := t.TempDir()
	target := filepath.Join(dir, "m.mlpackage")
	require.NoError(t, os.CopyFS(target, os.DirFS(fixture(t, "multifunction"))))
	require.NoError(t, Write(context.Background(), target, small(t), nil))
	require.Len(t, open(t, target).Program.Functions, 1)
	require.Equal(t, []string{"m.mlpackage"}, entries(t, dir), "nothing is left beside it")

	for name, make := range map[string]func(string) error{
		"a file":             func(p string) error { return os.WriteFile(p, []byte("mine"), 0o600) },
		"a folder":           func(p string) error { return os.MkdirAll(filepath.Join(p, "mine"), 0o755) },
		"an empty folder":    func(p string) error { return os.Mkdir(p, 0o755) },
		"manifest, a folder": func(p string) error { return os.MkdirAll(filepath.Join(p, manifestName), 0o755) },
	} {
		t.Run(name, func(t *testing.T) {
			target := filepath.Join(t.TempDir(), "x")
			require.NoError(t, make(target))
			require.ErrorIs(t, Write(context.Background(), target, small(t), nil), ErrTarget)
			require.Equal(t, []string{"x"}, entries(t, filepath.Dir(target)))
		})
	}
}

func entries(t testing.TB, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// broken are data that end in an error.
type broken struct{}

var errBroken = errors.New("the disk of the other side is gone")

func (broken) Bytes() ([]byte, error)                 { return nil, errBroken }
func (broken) WriteTo(w io.Writer) (n int64, e error) { w.Write([]byte("half")); return 4, errBroken }

func TestAFailedWriteLosesNothing(t *testing.T) { // hand
	dir := t.TempDir()
	target := filepath.Join(dir, "m.mlpackage")
	require.NoError(t, Write(context.Background(), target, small(t), nil))
	before := read(t, target, modelPath) + read(t, target, weightPath) + read(t, target, manifestName)
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	content := func(d mil.Data) func(*Package) {
		return func(p *Package) { p.Program.Functions[0].Body.Ops[0].Attribute("val").Content = d }
	}
	for name, c := range map[string]struct {
		ctx   context.Context
		spoil func(p *Package)
		want  error
	}{
		"canceled":            {canceled, func(*Package) {}, context.Canceled},
		"data that fail":      {context.Background(), content(broken{}), errBroken},
		"too few bytes":       {context.Background(), content(&held{[]byte("1234")}), blob.ErrSize},
		"weights not open":    {context.Background(), content(&mil.Blob{File: weightsPath, Offset: 64}), nil},
		"file outside":        {context.Background(), content(&mil.Blob{File: "@model_path/../../x", Offset: 64}), blob.ErrName},
		"program with faults": {context.Background(), func(p *Package) { p.Program.Functions[0].Body.Outputs = []string{"z"} }, mil.ErrOutput},
		"no description":      {context.Background(), func(p *Package) { p.Description = nil }, mil.ErrDescription},
	} {
		t.Run(name, func(t *testing.T) {
			p := small(t)
			c.spoil(p)
			err := Write(c.ctx, target, p, nil)
			require.Error(t, err)
			if c.want != nil {
				require.ErrorIs(t, err, c.want)
			}
			require.Equal(t, []string{"m.mlpackage"}, entries(t, dir))
			require.Equal(t, before, read(t, target, modelPath)+read(t, target, weightPath)+read(t, target, manifestName))
		})
	}
}

func TestAPackageCanBeWrittenOverItself(t *testing.T) { // invariant
	path := copyOf(t, "lut_w4_odd_count")
	p := open(t, path)
	weights := read(t, path, weightPath)
	p.Description.Metadata.Author = "somebody else"
	require.NoError(t, Write(context.Background(), path, p, nil))
	require.Equal(t, weights, read(t, path, weightPath))
	require.Equal(t, "somebody else", open(t, path).Description.Metadata.Author)
	require.NoError(t, p.Close())
	require.ErrorContains(t, Write(context.Background(), path, p, nil), "closed")
	require.Equal(t, weights, read(t, path, weightPath))
}

func TestOtherItemsAreTakenAlong(t *testing.T) { // hand
	path := copyOf(t, "multifunction")
	extra := filepath.Join(path, "Data", "org.example", "notes", "a.txt")
	require.NoError(t, os.MkdirAll(filepath.Dir(extra), 0o755))
	require.NoError(t, os.WriteFile(extra, []byte("kept"), 0o600))
	text := strings.Replace(read(t, path, manifestName), `"itemInfoEntries": {`, `"itemInfoEntries": {"X": {"author": "org.example", "name": "notes", "path": "org.example/notes", "description": ""},`, 1)
	require.NoError(t, os.WriteFile(filepath.Join(path, manifestName), []byte(text), 0o600))
	out := write(t, open(t, path))
	require.Equal(t, "kept", read(t, out.Path, "Data", "org.example", "notes", "a.txt"))
	require.Len(t, out.Manifest.Items, 3)
}

func TestWeightsMayHaveOtherNames(t *testing.T) { // hand
	p := small(t)
	inner := write(t, p)
	v := inner.Program.Functions[0].Body.Ops[0].Attribute("val")
	v.Blob().File = "@model_path/other/w.bin"
	out := write(t, &Package{Program: inner.Program, Description: inner.Description})
	require.Len(t, read(t, out.Path, "Data", modelAuthor, "other", "w.bin"), 64+64+30)
	require.Len(t, out.Manifest.Items, 2)
}

func TestProgressCountsTheBytes(t *testing.T) { // hand
	var last int64
	out := filepath.Join(t.TempDir(), "m.mlpackage")
	require.NoError(t, Write(context.Background(), out, small(t), func(n int64) {
		require.GreaterOrEqual(t, n, last)
		last = n
	}))
	require.GreaterOrEqual(t, last, int64(64+64+30))
}

// endless are data that are made as they are written.
type endless struct{ bytes int64 }

func (e endless) Bytes() ([]byte, error) { panic("asked for all at once") }
func (e endless) WriteTo(w io.Writer) (n int64, err error) {
	chunk := make([]byte, 1<<20)
	for n < e.bytes && err == nil {
		var k int
		k, err = w.Write(chunk[:min(int64(len(chunk)), e.bytes-n)])
		n += int64(k)
	}
	return n, err
}

func TestLongTwoGigabytesTakeLittleMemory(t *testing.T) { // invariant
	if os.Getenv("ANELAB_LONG") == "" {
		t.Skip("writes 4 GB: set ANELAB_LONG=1")
	}
	const rows = 1 << 20
	p := small(t)
	ops := p.Program.Functions[0].Body.Ops
	ops[0].Outputs[0].Type.Shape = []int64{rows, 1024}
	ops[0].Attribute("val").Type.Shape = []int64{rows, 1024}
	ops[0].Attribute("val").Content = endless{rows * 1024 * 2}
	ops[1].Outputs[0].Type.Shape = []int64{2, rows}
	p.Program.Functions[0].Inputs[0].Type.Shape = []int64{2, 1024}
	p.Description.Inputs[0].Array.Shape, p.Description.Outputs[0].Array.Shape = []int64{2, 1024}, []int64{2, rows}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	once := write(t, p)
	twice := write(t, once)
	runtime.ReadMemStats(&after)
	t.Logf("%d bytes allocated for two packages of 2 GB", after.TotalAlloc-before.TotalAlloc)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(50<<20))
	info, err := os.Stat(filepath.Join(twice.Path, weightPath))
	require.NoError(t, err)
	require.Equal(t, int64(128+rows*1024*2), info.Size())
}
