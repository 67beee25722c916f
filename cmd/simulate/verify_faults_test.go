package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/chunking"
	"anelab/chunking/emit"
	"anelab/cmd/simulate/internal/console"
	"anelab/coreml/mlpackage"
	"anelab/internal/checkpoint"
	"anelab/internal/checkpoint/safetensors"
	"anelab/internal/shareddata"
	"anelab/quant"
)

// typed runs the command and returns its exit code and both streams.
func typed(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	c := &console.Console{In: strings.NewReader(""), Out: &o, Err: &e, Getenv: func(string) string { return "" }}
	code = run(c, args)
	return code, o.String(), e.String()
}

// inTestdata is the path of something committed.
func inTestdata(t *testing.T, name string) string {
	return filepath.Join(shareddata.ModuleRoot(t), "testdata", filepath.FromSlash(name))
}

// makeChunks emits the chunks of a layout of the small model.
func makeChunks(t *testing.T, layout string) []string {
	src, err := checkpoint.Open(inTestdata(t, "golden/tiny-e2b/bf16"))
	require.NoError(t, err)
	defer src.Close()
	m, err := chunking.NewModel(src.Config)
	require.NoError(t, err)
	l, err := chunking.Parse(layout, m)
	require.NoError(t, err)
	plan, err := l.Plan(m)
	require.NoError(t, err)
	chunks, err := emit.Emit(context.Background(), plan, src, emit.Options{})
	require.NoError(t, err)
	var paths []string
	dir := t.TempDir()
	for _, c := range chunks {
		paths = append(paths, filepath.Join(dir, c.Name+".mlpackage"))
		require.NoError(t, mlpackage.Write(context.Background(), paths[len(paths)-1], c.Package, nil))
	}
	return paths
}

func TestVerifyCheckpointWithItsPackages(t *testing.T) { // invariant
	base := inTestdata(t, "golden/tiny-e2b/bf16")
	chunks := makeChunks(t, "L0-4 w=f16 | L5-9+head w=f16 context=40")
	code, out, errs := typed(append([]string{"verify", base}, chunks...)...)
	require.Equal(t, exitDone, code, errs)
	require.Contains(t, out, "packages = whole: ")
	require.Contains(t, out, "\nyes: packages = chunked = whole in ane\n")

	code, out, _ = typed(append([]string{"verify", base, "--format", "json"}, chunks...)...)
	require.Equal(t, exitDone, code)
	require.Contains(t, out, `"stored_dense": `)

	t.Run("the packages of another checkpoint", func(t *testing.T) { // fp16 roundings of other weights
		code, out, _ := typed(append([]string{"verify", inTestdata(t, "golden/tiny-e2b/fp32"), "--format", "junit"}, chunks...)...)
		require.Equal(t, exitNo, code)
		require.Contains(t, out, `failure message="layers.0.`)
	})
	t.Run("a chunk is missing", func(t *testing.T) {
		code, out, errs := typed("verify", base, chunks[0])
		require.Equal(t, exitFailed, code)
		require.Empty(t, out)
		require.Contains(t, errs, "5 layers in 1 package (merged_chunk1 5), want 10; give every chunk of one layout, once")
	})
}

// damaged copies a committed package and lets a function change it.
func damaged(t *testing.T, name string, change func(dir string)) string {
	dir := filepath.Join(t.TempDir(), name+".mlpackage")
	require.NoError(t, os.CopyFS(dir, os.DirFS(inTestdata(t, "coreml/ops/"+name+".mlpackage"))))
	change(dir)
	return dir
}

func rewrite(t *testing.T, path string, replace ...string) {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	changed := strings.NewReplacer(replace...).Replace(string(text))
	require.NotEqual(t, string(text), changed)
	require.NoError(t, os.WriteFile(path, []byte(changed), 0o644))
}

// hand: every way to be unusable is refused with the file, the place in it, and what to do; nothing is written.
func TestVerifyBadPackages(t *testing.T) {
	const model = "Data/com.apple.CoreML/model.mlmodel"
	calls := inTestdata(t, "coreml/ops/gemma_mlp_block.safetensors")
	for name, c := range map[string]struct {
		change func(dir string)
		want   []string
	}{
		"a manifest without the model": {func(dir string) { require.NoError(t, os.Remove(filepath.Join(dir, model))) }, []string{"Manifest.json", "item ", "no Data/com.apple.CoreML/model.mlmodel", "copy it with all its folders"}},
		"no manifest":                  {func(dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "Manifest.json"))) }, []string{"no Manifest.json", "not an .mlpackage"}},
		"no weights": {func(dir string) {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "Data/com.apple.CoreML/weights")))
		}, []string{"weights/weight.bin", "copy it with all its folders"}},
		"an unknown opset":   {func(dir string) { rewrite(t, filepath.Join(dir, model), "CoreML8", "CoreML0", "CoreML7", "CoreML0") }, []string{"model.mlmodel", "main", "CoreML0"}},
		"an op that is none": {func(dir string) { rewrite(t, filepath.Join(dir, model), "layer_norm", "layer_nerm") }, []string{"model.mlmodel", "main/", "(layer_nerm)", "unknown op", "layer_norm"}},
		"weights that end early": {func(dir string) {
			require.NoError(t, os.Truncate(filepath.Join(dir, "Data/com.apple.CoreML/weights/weight.bin"), 300))
		}, []string{"weight.bin", "main/"}},
	} {
		t.Run(name, func(t *testing.T) {
			report := filepath.Join(t.TempDir(), "report.xml")
			require.NoError(t, os.WriteFile(report, []byte("of yesterday"), 0o644))
			code, out, errs := typed("verify", damaged(t, "gemma_mlp_block", c.change), "--expect", calls, "--format", "junit", "-o", report)
			require.Equal(t, exitFailed, code, errs)
			require.Empty(t, out)
			for _, part := range c.want {
				require.Contains(t, errs, part)
			}
			kept, err := os.ReadFile(report)
			require.NoError(t, err)
			require.Equal(t, "of yesterday", string(kept))
		})
	}
}

// hand: calls that do not fit the ports.
func TestVerifyBadCalls(t *testing.T) {
	one := func(name string, shape ...int) quant.Tensor {
		n := 1
		for _, d := range shape {
			n *= d
		}
		return quant.Tensor{Name: name, DType: quant.F16, Shape: shape, Data: make([]byte, 2*n)}
	}
	chunk := makeChunks(t, "@2way w=f16 context=40")[1]
	for name, c := range map[string]struct {
		inputs []quant.Tensor
		want   []string
	}{
		"a mask for another context": {[]quant.Tensor{one("causal_mask_full", 1, 1, 1, 2048)}, []string{"main/causal_mask_full", "[1, 1, 1, 2048], want [1, 1, 1, 40]", "mask for another context", "built for 40 positions"}},
		"a port of another shape":    {[]quant.Tensor{one("hidden_states", 1, 2, 48)}, []string{"main/hidden_states", "[1, 2, 48], want [1, 1, 48]", "wrong shape"}},
		"a port that there is not":   {nil, []string{"main/hidden_states", "input missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := append(c.inputs, filling(t, chunk, c.inputs)...)
			path := filepath.Join(t.TempDir(), "calls.safetensors")
			require.NoError(t, safetensors.Write(path, all, nil))
			code, _, errs := typed("verify", chunk, chunk, "--inputs", path)
			require.Equal(t, exitFailed, code)
			for _, part := range c.want {
				require.Contains(t, errs, part)
			}
			require.Contains(t, errs, filepath.Base(chunk))
		})
	}
}

// filling is zeros for the ports of a chunk that a case does not give; none if it gives nothing.
func filling(t *testing.T, chunk string, given []quant.Tensor) []quant.Tensor {
	if given == nil {
		return []quant.Tensor{{Name: "other", DType: quant.F16, Shape: []int{1}, Data: []byte{0, 0}}}
	}
	pkg, err := mlpackage.Open(chunk)
	require.NoError(t, err)
	defer pkg.Close()
	var all []quant.Tensor
	for _, in := range pkg.Program.Functions[0].Inputs {
		if in.Name == given[0].Name {
			continue
		}
		x := quant.Tensor{Name: in.Name, DType: quant.F16}
		n := 1
		for _, d := range in.Type.Shape {
			x.Shape = append(x.Shape, int(d))
			n *= int(d)
		}
		x.Data = make([]byte, 2*n)
		all = append(all, x)
	}
	return all
}
