package dense

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"

	"anelab/internal/npy"
	"anelab/parity"
	"anelab/parity/golden"
)

// counted is the matrix of the case: 8×10, element (i, j) is 10i + j.
func counted() *tensor.Dense {
	values := make([]float32, 80)
	for i := range values {
		values[i] = float32(i)
	}
	return New(values, 8, 10)
}

func view(t *testing.T, d *tensor.Dense, slices ...tensor.Slice) *tensor.Dense {
	t.Helper()
	v, err := d.Slice(slices...)
	require.NoError(t, err)
	return v.(*tensor.Dense)
}

func TestLOAD08ViewsAreMaterialised(t *testing.T) { // hand: index arithmetic
	d := counted()
	for name, c := range map[string]struct {
		view  *tensor.Dense
		shape []int
		want  func(i, j int) float32
	}{
		"columns 2 to 4": {view(t, d, nil, tensor.S(2, 5)), []int{8, 3}, func(i, j int) float32 { return float32(10*i + j + 2) }},
		"rows 3 to 4":    {view(t, d, tensor.S(3, 5)), []int{2, 10}, func(i, j int) float32 { return float32(10*(i+3) + j) }},
		"a block":        {view(t, d, tensor.S(1, 4), tensor.S(6, 8)), []int{3, 2}, func(i, j int) float32 { return float32(10*(i+1) + j + 6) }},
	} {
		t.Run(name, func(t *testing.T) {
			values, shape := Contiguous(c.view)
			require.Equal(t, c.shape, shape)
			require.Len(t, values, shape[0]*shape[1])
			for i := range shape[0] {
				for j := range shape[1] {
					require.Equal(t, c.want(i, j), values[i*shape[1]+j])
				}
			}
		})
	}
}

func TestLOAD08TransposesAreMaterialised(t *testing.T) { // hand
	d := counted()
	require.NoError(t, d.T()) // lazy: only the access pattern changes
	values, shape := Contiguous(d)
	require.Equal(t, []int{10, 8}, shape)
	for i := range 10 {
		for j := range 8 {
			require.Equal(t, float32(10*j+i), values[8*i+j])
		}
	}
	row := view(t, counted(), tensor.S(0, 1)) // gorgonia drops the axis: a vector
	values, shape = Contiguous(row)
	require.Equal(t, []int{10}, shape)
	require.Equal(t, []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, values)
}

// TestLOAD08RawDataOfAViewIsWrong documents why Contiguous exists; when it fails, gorgonia has been repaired.
func TestLOAD08RawDataOfAViewIsWrong(t *testing.T) { // hand
	raw := view(t, counted(), nil, tensor.S(2, 5)).Data().([]float32)
	require.NotEqual(t, 24, len(raw), "8×3 values were asked for")
}

func TestNPYThroughBothLibraries(t *testing.T) { // oracle: gorgonia's reader and writer, by other authors than ours
	path := filepath.Join(t.TempDir(), "x.npy")
	want := counted()
	require.NoError(t, WriteNPY(path, want))
	got, err := ReadNPY(path)
	require.NoError(t, err)
	require.True(t, got.Eq(want))

	var theirs tensor.Dense
	require.NoError(t, theirs.ReadNpy(bytes.NewReader(npy.Encode([]int{8, 10}, want.Data().([]float32)))))
	require.True(t, theirs.Eq(want), "they read what we write")
	var b bytes.Buffer
	require.NoError(t, want.WriteNpy(&b))
	ours, err := npy.Parse("theirs.npy", b.Bytes())
	require.NoError(t, err)
	values, err := ours.Floats()
	require.NoError(t, err)
	require.Equal(t, want.Data(), values, "we read what they write")
}

func TestTapsAndGoldens(t *testing.T) { // hand
	d := OfTap(parity.Tap{Point: "embeds", Layer: -1, Shape: []int{2, 3}, Data: []float32{1, 2, 3, 4, 5, 6}})
	x, err := d.At(1, 2)
	require.NoError(t, err)
	require.Equal(t, float32(6), x)
	f, err := golden.Open("../../../testdata/golden/tiny-e2b/golden_fp32.safetensors")
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, tensor.Shape{4, 1, 1}, OfCase(f.Cases()[0], "probs.3").Shape())
	require.Nil(t, OfCase(f.Cases()[0], "probs.1"))
	require.Panics(t, func() { New(make([]float32, 5), 2, 3) })
}
