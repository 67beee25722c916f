package kernel

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/half"
)

// onEveryPath runs f once with every path of this CPU in force.
func onEveryPath(t *testing.T, f func(t *testing.T)) {
	before := active
	defer func() { active = before }()
	for _, name := range Paths() {
		active = choose(name)
		t.Run(name, f)
	}
}

// onPath runs f with one path in force.
func onPath(p path, f func()) {
	before := active
	defer func() { active = before }()
	active = p
	f()
}

func TestRequiredPathIsTaken(t *testing.T) {
	require.Contains(t, Paths(), Path())
	if want := os.Getenv("ANELAB_KERNEL_REQUIRE"); want != "" {
		require.Equal(t, want, Path(), "the CPU or the build does not take the path that was asked for")
	}
	require.Panics(t, func() { choose("sse9") })
}

func normal(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func TestRows64EqualsDot64(t *testing.T) { // invariant: the canonical structure on every path, every length and batch
	onEveryPath(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		for n := 1; n <= 67; n++ {
			for _, rows := range []int{1, 3, 4, 7} {
				w, x, y := normal(r, 4*n), normal(r, rows*n), make([]float64, 4*rows)
				Rows64(y, w, x, n)
				for i := range rows {
					for k := range 4 {
						require.Equal(t, Dot64(w[k*n:(k+1)*n], x[i*n:(i+1)*n]), y[i*4+k], "n=%d t=%d", n, rows)
					}
				}
			}
		}
	})
}

func TestRows32(t *testing.T) { // invariants: close to the float64 sum; the same bits whatever t is
	onEveryPath(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		for _, n := range []int{1, 5, 15, 16, 17, 33, 61, 257} {
			const rows = 7
			w, x := normal(r, 4*n), normal(r, rows*n)
			all, one := make([]float32, 4*rows), make([]float32, 4)
			Rows32(all, w, x, n)
			for i := range rows {
				Rows32(one, w, x[i*n:(i+1)*n], n)
				require.Equal(t, one, all[i*4:(i+1)*4], "n=%d row %d", n, i)
				for k := range 4 {
					require.InDelta(t, Dot64(w[k*n:(k+1)*n], x[i*n:(i+1)*n]), one[k], 1e-6*float64(n), "n=%d", n)
				}
			}
		}
	})
}

func TestDecodersEveryPattern(t *testing.T) { // all 65536 patterns, plus a tail that no vector covers
	src := make([]byte, 2*(1<<16+5))
	for i := range 1<<16 + 5 {
		binary.LittleEndian.PutUint16(src[2*i:], uint16(i))
	}
	same := func(t *testing.T, want, got float32, i int) {
		if math.IsNaN(float64(want)) {
			require.True(t, math.IsNaN(float64(got)), "%#04x", i)
		} else if math.Float32bits(want) != math.Float32bits(got) {
			require.Equal(t, want, got, "%#04x", i)
		}
	}
	onEveryPath(t, func(t *testing.T) {
		dst := make([]float32, 1<<16+5)
		DecodeBF16(dst, src)
		for i := range dst {
			same(t, half.BF16ToF32(uint16(i)), dst[i], i)
		}
		DecodeF16(dst, src)
		for i := range dst {
			same(t, half.F16ToF32(uint16(i)), dst[i], i)
		}
		DecodeBF16AsF16(dst, src)
		for i := range dst {
			same(t, half.RoundF16(half.BF16ToF32(uint16(i))), dst[i], i)
		}
	})
}

func TestGeneratedAssemblyHasNotDrifted(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the go command is not here to run the generator")
	}
	dir := t.TempDir()
	cmd := exec.Command("go", "run", "./_asm", "-dir", dir)
	cmd.Env = append(os.Environ(), "GOARCH=", "GOOS=") // the generator runs here, whatever the tests are built for
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		want, err := os.ReadFile(dir + "/" + f.Name())
		require.NoError(t, err)
		got, err := os.ReadFile(f.Name())
		require.NoError(t, err)
		require.True(t, string(want) == string(got), "%s: run go generate ./internal/kernel", f.Name())
	}
}

func BenchmarkRows(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	const n = 1536
	for _, t := range []struct {
		name string
		rows int
	}{{"t=1", 1}, {"t=64", 64}} {
		w, x := normal(r, 4*n), normal(r, t.rows*n)
		y32, y64 := make([]float32, 4*t.rows), make([]float64, 4*t.rows)
		b.Run("f32/"+t.name, func(b *testing.B) {
			for b.Loop() {
				Rows32(y32, w, x, n)
			}
			b.ReportMetric(float64(b.N)*8*n*float64(t.rows)/b.Elapsed().Seconds()/1e9, "GFLOPS")
		})
		b.Run("f64/"+t.name, func(b *testing.B) {
			for b.Loop() {
				Rows64(y64, w, x, n)
			}
			b.ReportMetric(float64(b.N)*8*n*float64(t.rows)/b.Elapsed().Seconds()/1e9, "GFLOPS")
		})
	}
}
