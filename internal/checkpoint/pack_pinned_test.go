package checkpoint

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/kernel"
	"anelab/parity"
	"anelab/quant"
)

// pinnedPackedANE is the hash of the logits of tiny-e2b in 4 bits, mode ane. It changes only when a rounding rule or the way palettes
// are made changes.
const pinnedPackedANE = 0xbcd4e704a59e0411

// packedTiny packs tiny-e2b with a head of 4 bits and opens it.
func packedTiny(t *testing.T) *Checkpoint {
	t.Helper()
	src, err := OpenFS(anelab.Files, "testdata/golden/tiny-e2b/bf16")
	require.NoError(t, err)
	defer src.Close()
	path := filepath.Join(t.TempDir(), "tiny.anelab")
	require.NoError(t, Pack(context.Background(), src, path, PackOptions{Config: src.Config, Mode: quant.Uniform, HeadBits: 4, TableBits: 16}, nil))
	p, err := Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

func packedModel(t *testing.T, p gemma4.MatrixSource, c gemma4.Config, a arith.Arithmetic, o gemma4.Options) *gemma4.Model {
	t.Helper()
	m, err := gemma4.Load(c, p, a, o)
	require.NoError(t, err)
	return m
}

// answers runs a prompt past the window wrap and a step.
func answers(t *testing.T, m *gemma4.Model) []float32 {
	t.Helper()
	s, err := m.NewState(40)
	require.NoError(t, err)
	var all []float32
	for _, tokens := range [][]int{{2, 17, 250, 33, 4, 99, 101, 7, 8, 23, 42}, {5}} {
		l, err := s.Prefill(context.Background(), tokens)
		require.NoError(t, err)
		all = append(all, l...)
	}
	return all
}

func TestPackedANEIsTheSameEverywhere(t *testing.T) { // pinned: every architecture and every path of the kernels
	p := packedTiny(t)
	h := fnv.New64a()
	for _, v := range answers(t, packedModel(t, p, p.Config, arith.NewANE(arith.ANERules{}, 2), gemma4.Options{})) {
		require.NoError(t, binary.Write(h, binary.LittleEndian, math.Float32bits(v)))
	}
	require.Equal(t, uint64(pinnedPackedANE), h.Sum64(), "kernels %s on %s", kernel.Path(), runtime.GOARCH)
}

func TestPackedANEOnEveryPath(t *testing.T) { // the test above, once in a process of its own for every path
	if os.Getenv(kernel.EnvPath) != "" || runtime.GOARCH != "amd64" {
		t.Skip("a path is forced already, or there is but one beside generic Go")
	}
	program, err := os.Executable()
	require.NoError(t, err)
	for _, path := range kernel.Paths() {
		cmd := exec.Command(program, "-test.run", "^TestPackedANEIsTheSameEverywhere$")
		cmd.Env = append(os.Environ(), kernel.EnvPath+"="+path)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", path, out)
		require.Contains(t, string(out), "PASS")
	}
}

func TestPackedF32IsCloseToWideSums(t *testing.T) { // oracle: the palettes decoded, every sum in float64
	p := packedTiny(t)
	got := answers(t, packedModel(t, p, p.Config, f32(t, 2), gemma4.Options{}))
	want := answers(t, packedModel(t, unpacked{p}, p.Config, arith.NewGraph(arith.GraphExact, 2), gemma4.Options{}))
	d := parity.Compare(got, want, parity.Options{RowLen: p.Config.VocabSize})
	require.NoError(t, parity.Tolerance{PeakRel: 1e-4}.Check(d))
}

func TestPackedModelDoesNotDependOnThreads(t *testing.T) { // invariant, with keys and values in either width
	p := packedTiny(t)
	for _, o := range []gemma4.Options{{}, {KV: gemma4.KVFloat16}} {
		want := answers(t, packedModel(t, p, p.Config, f32(t, 1), o))
		for _, threads := range []int{2, 3, 5} {
			require.Equal(t, want, answers(t, packedModel(t, p, p.Config, f32(t, threads), o)), "%d threads", threads)
		}
	}
}

func TestPackedStepAllocatesNothing(t *testing.T) {
	p := packedTiny(t)
	for _, mode := range []string{"f32", "ane"} {
		a, err := arith.New(mode, 2)
		require.NoError(t, err)
		s, err := packedModel(t, p, p.Config, a, gemma4.Options{KV: gemma4.KVFloat16}).NewState(400)
		require.NoError(t, err)
		step := func() {
			_, err := s.Step(context.Background(), 7)
			require.NoError(t, err)
		}
		for range 60 { // scratch grows in large steps
			step()
		}
		require.Less(t, testing.AllocsPerRun(100, step), 1.0, mode)
	}
}

func f32(t *testing.T, threads int) arith.Arithmetic {
	t.Helper()
	a, err := arith.New("f32", threads)
	require.NoError(t, err)
	return a
}

func TestPackedForAnotherConfigIsRefused(t *testing.T) {
	src, err := OpenFS(anelab.Files, "testdata/golden/tiny-e2b/bf16")
	require.NoError(t, err)
	defer src.Close()
	other := src.Config
	other.HiddenSize *= 2
	path := filepath.Join(t.TempDir(), "other.anelab")
	require.NoError(t, Pack(context.Background(), src, path, PackOptions{Config: other, Mode: quant.Uniform, HeadBits: 4, TableBits: 16}, nil))
	_, err = Open(path)
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, "shape")
}

// oracle: the palettes decoded, every sum in float64, at real width (E2B's, ten layers, head of 4 bits).
func TestPackedF32AtRealWidthLong(t *testing.T) {
	if os.Getenv("ANELAB_LONG") == "" {
		t.Skip("packs and runs ten layers of E2B: set ANELAB_LONG=1")
	}
	src, err := Open("formula:e2b-10L")
	require.NoError(t, err)
	defer src.Close()
	path := filepath.Join(t.TempDir(), "e2b.anelab")
	require.NoError(t, Pack(context.Background(), src, path, PackOptions{Config: src.Config, Mode: quant.Uniform, HeadBits: 4, TableBits: 16}, nil))
	p, err := Open(path)
	require.NoError(t, err)
	defer p.Close()
	got := answers(t, packedModel(t, p, p.Config, f32(t, 2), gemma4.Options{}))
	want := answers(t, packedModel(t, unpacked{p}, p.Config, arith.NewGraph(arith.GraphExact, 2), gemma4.Options{}))
	d := parity.Compare(got, want, parity.Options{RowLen: p.Config.VocabSize})
	t.Logf("off by %.2g of the greatest logit", d.PeakRel())
	require.NoError(t, parity.Tolerance{PeakRel: 1e-4}.Check(d))
}
