package quant_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/checkpoint/safetensors"
	"anelab/internal/shareddata"
	"anelab/quant"
)

// fixture is what coremltools made of one matrix; README.md beside it says how.
type fixture struct {
	name   string
	set    *safetensors.Set
	weight quant.Matrix
	cases  map[string]fixtureCase
}

type fixtureCase struct {
	Config struct {
		Mode, Granularity, DType string
		NBits                    int  `json:"nbits"`
		GroupSize                int  `json:"group_size"`
		BlockSize                int  `json:"block_size"`
		ChannelAxis              *int `json:"channel_axis"`
		ClusterDim               int  `json:"cluster_dim"`
		EnablePerChannelScale    bool `json:"enable_per_channel_scale"`
	}
	IndexBits int     `json:"index_bits"`
	Path      string  `json:"path"`
	SSE       float64 `json:"sse"`
	Kept      int     `json:"kept"`
}

// fixtures opens every matrix of a folder, palettes or linear and pruned ones.
func fixtures(t *testing.T, folder string, linear bool) []fixture {
	t.Helper()
	var index map[string]json.RawMessage
	text, err := os.ReadFile(filepath.Join(folder, "index.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &index))
	prefix := ""
	if linear {
		inner := index["_linear"]
		clear(index)
		require.NoError(t, json.Unmarshal(inner, &index))
		prefix = "linear_"
	}
	var out []fixture
	for name, raw := range index {
		if strings.HasPrefix(name, "_") {
			continue
		}
		f := fixture{name: name}
		require.NoError(t, json.Unmarshal(raw, &f.cases))
		f.set, err = safetensors.Open(filepath.Join(folder, prefix+name+".safetensors"))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.set.Close()) })
		f.weight = f.matrix(t, "weight")
		out = append(out, f)
	}
	return out
}

func (f fixture) tensor(t *testing.T, name string) quant.Tensor {
	t.Helper()
	x, err := f.set.Tensor(name)
	require.NoError(t, err)
	return x
}

// matrix views a weight of any rank as [out, in].
func (f fixture) matrix(t *testing.T, name string) quant.Matrix {
	t.Helper()
	x := f.tensor(t, name)
	x.Shape = []int{x.Shape[0], x.Len() / x.Shape[0]}
	m, err := quant.Dense(x)
	require.NoError(t, err)
	return m
}

func (f fixture) floats(t *testing.T, name string) []float32 {
	t.Helper()
	x, err := f.tensor(t, name).Floats()
	require.NoError(t, err)
	return x
}

// palette views what coremltools stored. A scaled table is stored once per column there, always the same.
func (f fixture) palette(t *testing.T, key string, c fixtureCase) *quant.Palette {
	t.Helper()
	lut := f.floats(t, key+"/lut")
	dtype := f.tensor(t, key+"/lut").DType
	tables := quant.Tables{LUT: lut, Indices: quant.Pack(f.tensor(t, key+"/indices").Data, c.IndexBits)}
	if c.Config.EnablePerChannelScale {
		tables.Scale = f.floats(t, key+"/scale")
		tables.LUT = nil
		size := 1 << c.IndexBits
		for at := 0; at < len(lut); at += size * len(tables.Scale) {
			tables.LUT = append(tables.LUT, lut[at:at+size]...)
		}
	}
	e := quant.Encoding{DType: dtype, Bits: c.IndexBits, Group: c.Config.GroupSize, Axis: axis(c), Vector: c.Config.ClusterDim}
	p, err := quant.NewPalette(f.weight.Rows(), f.weight.Cols(), e, tables)
	require.NoError(t, err)
	return p
}

func axis(c fixtureCase) int {
	if c.Config.ChannelAxis == nil {
		return 0
	}
	return *c.Config.ChannelAxis
}

func options(t *testing.T, c fixtureCase) quant.Options {
	t.Helper()
	mode, err := quant.ParseMode(c.Config.Mode)
	require.NoError(t, err)
	return quant.Options{Mode: mode, Bits: c.Config.NBits, Group: c.Config.GroupSize, Axis: axis(c),
		Vector: c.Config.ClusterDim, ChannelScale: c.Config.EnablePerChannelScale}
}

// Oracle: coremltools. Every group of the kmeans1d path, uniform and unique has its bits; elsewhere the error is not above.
func TestPalettesOfTheConverter(t *testing.T) {
	t.Run("committed", func(t *testing.T) { checkPalettes(t, committed(t)) })
	t.Run("shared", func(t *testing.T) { checkPalettes(t, shareddata.Dir(t, "coreml/palettize")) })
}

// committed is the folder of make_palettes.py.
func committed(t *testing.T) string {
	t.Helper()
	return filepath.Join(shareddata.ModuleRoot(t), "testdata", "coreml", "palettize")
}

func checkPalettes(t *testing.T, folder string) {
	groups, better, worst := map[string]int{}, 0, 0.0
	for _, f := range fixtures(t, folder, false) {
		for key, c := range f.cases {
			t.Run(f.name+"/"+key, func(t *testing.T) {
				want := f.palette(t, key, c)
				report, err := quant.Compare(f.weight, want)
				require.NoError(t, err)
				require.InEpsilon(t, c.SSE+1e-30, report.SSE+1e-30, 1e-8, "the stored palette read back")
				got, err := quant.Palettize(context.Background(), f.weight, options(t, c), nil)
				require.NoError(t, err)
				groups[c.Path] += got.Groups()
				require.Equal(t, want.Encoding(), got.Encoding())
				requireBits(t, want.Scale(), got.Scale())
				if c.Path != "sklearn" {
					for g := range want.Groups() {
						requireBits(t, want.Table(g), got.Table(g))
					}
					require.Equal(t, want.Indices(), got.Indices())
					return
				}
				ourErrors := groupErrors(f.weight, got)
				for g, theirs := range groupErrors(f.weight, want) {
					ours := ourErrors[g]
					require.LessOrEqual(t, ours, theirs, "group %d", g)
					if ours < theirs {
						better++
					}
					if theirs > 0 {
						worst = max(worst, ours/theirs)
					}
				}
			})
		}
	}
	require.NotEmpty(t, groups)
	t.Logf("groups by path: %v; of the sklearn ones %d are better, the closest has %.6f of the converter's error", groups, better, worst)
}

// requireBits compares float32 by bits, as −0 is not 0 in a file.
func requireBits(t *testing.T, want, got []float32) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, math.Float32bits(want[i]), math.Float32bits(got[i]), "entry %d: want %g, got %g", i, want[i], got[i])
	}
}

// groupErrors are the squared errors of the groups in float64.
func groupErrors(w quant.Matrix, p *quant.Palette) []float64 {
	e, sums := p.Encoding(), make([]float64, p.Groups())
	size := []int{w.Rows(), w.Cols()}[e.Axis] / p.Groups()
	want, got := make([]float32, w.Cols()), make([]float32, w.Cols())
	for r := range w.Rows() {
		w.Row(want, r)
		p.Row(got, r)
		for c := range want {
			d := float64(want[c]) - float64(got[c])
			sums[[]int{r, c}[e.Axis]/size] += d * d
		}
	}
	return sums
}

// Oracle: coremltools. Integers, scales, offsets, masks and decoded weights have its bits.
func TestLinearAndPrunedOfTheConverter(t *testing.T) {
	t.Run("committed", func(t *testing.T) { checkLinear(t, committed(t)) })
	t.Run("shared", func(t *testing.T) { checkLinear(t, shareddata.Dir(t, "coreml/palettize")) })
}

func checkLinear(t *testing.T, folder string) {
	linear, pruned := 0, 0
	for _, f := range fixtures(t, folder, true) {
		for key, c := range f.cases {
			t.Run(f.name+"/"+key, func(t *testing.T) {
				if strings.HasPrefix(key, "prune") {
					pruned++
					f.checkPruned(t, key, c)
				} else {
					linear++
					f.checkLinear(t, key, c)
				}
			})
		}
	}
	require.NotZero(t, linear)
	require.NotZero(t, pruned)
	t.Logf("%d linear and %d pruned weights", linear, pruned)
}

func (f fixture) checkLinear(t *testing.T, key string, c fixtureCase) {
	spec := quant.LinearSpec{Integer: quant.I8, Bits: 8, Block: c.Config.BlockSize}
	if strings.HasPrefix(c.Config.DType, "u") {
		spec.Integer = quant.U8
	}
	if strings.HasSuffix(c.Config.DType, "4") {
		spec.Bits = 4
	}
	spec.Granularity = map[string]quant.Granularity{"per_tensor": quant.PerTensor, "per_channel": quant.PerRow, "per_block": quant.PerBlock}[c.Config.Granularity]
	symmetry := quant.Asymmetric
	if c.Config.Mode == "linear_symmetric" {
		symmetry = quant.Symmetric
	}
	got, err := quant.Quantize(f.weight, spec, symmetry)
	require.NoError(t, err)
	require.Equal(t, quant.Pack(f.tensor(t, key+"/data").Data, spec.Bits), got.Parts().Data)
	requireBits(t, f.floats(t, key+"/scale"), got.Parts().Scale)
	if f.set.Has(key + "/offset") {
		for i, want := range f.floats(t, key+"/offset") {
			require.Equal(t, want, float32(got.Parts().Offset[i]), "offset %d", i)
		}
	} else {
		require.Nil(t, got.Parts().Offset)
	}
	again, err := quant.NewLinear(got.Rows(), got.Cols(), got.Spec(), got.Parts())
	require.NoError(t, err)
	requireRows(t, f.matrix(t, key+"/dense"), again)
}

func (f fixture) checkPruned(t *testing.T, key string, c fixtureCase) {
	var got *quant.Sparse
	var err error
	switch key {
	case "prune_threshold":
		got = quant.PruneThreshold(f.weight, 0.05)
	case "prune_sparsity50":
		got, err = quant.PruneMagnitude(f.weight, 0.5)
	case "prune_2of4":
		got, err = quant.PruneNOfM(f.weight, 2, 4)
	default:
		t.Fatalf("no rule for %s", key)
	}
	require.NoError(t, err)
	require.Equal(t, c.Kept, got.Values().Len())
	require.Equal(t, quant.Pack(f.tensor(t, key+"/mask").Data, 1), got.Mask())
	require.Equal(t, f.tensor(t, key+"/nonzero").Data, got.Values().Data)
	again, err := quant.NewSparse(got.Rows(), got.Cols(), got.Mask(), got.Values())
	require.NoError(t, err)
	want, row := make([]float32, got.Cols()), make([]float32, got.Cols())
	mask := f.tensor(t, key+"/mask").Data
	for r := range got.Rows() {
		f.weight.Row(want, r)
		for i := range want {
			if mask[r*len(want)+i] == 0 {
				want[i] = 0
			}
		}
		again.Row(row, r)
		require.Equal(t, want, row)
	}
}

// requireRows compares two matrices by bits.
func requireRows(t *testing.T, want, got quant.Matrix) {
	t.Helper()
	a, b := make([]float32, want.Cols()), make([]float32, got.Cols())
	for r := range want.Rows() {
		want.Row(a, r)
		got.Row(b, r)
		requireBits(t, a, b)
	}
}
