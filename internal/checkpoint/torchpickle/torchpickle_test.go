package torchpickle

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/quant"
)

// TestLOAD02ViewsOfOneStorage reads the same state dict in four protocols (oracle: testdata/make_fixtures.py).
func TestLOAD02ViewsOfOneStorage(t *testing.T) {
	paths, err := filepath.Glob("testdata/views_p*.bin")
	require.NoError(t, err)
	require.Len(t, paths, 4)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f, err := Open(path)
			require.NoError(t, err)
			defer f.Close()
			require.Equal(t, []string{"a", "b", "flags", "n", "p", "t"}, f.Names())
			for name, want := range map[string]struct {
				shape []int
				x     []float64
			}{
				"a":     {[]int{2, 3}, []float64{0, 1, 2, 3, 4, 5}},
				"b":     {[]int{2, 3}, []float64{6, 7, 8, 9, 10, 11}},
				"t":     {[]int{3, 2}, []float64{1, 4, 2, 5, 3, 6}}, // LOAD-08: strides (1, 3) from element 1, laid out by rows
				"n":     {[]int{}, []float64{-3}},
				"flags": {[]int{3, 1}, []float64{1, 0, 1}},
				"p":     {[]int{5}, []float64{1, math.Ldexp(1, -133), -math.Ldexp(127, -133), math.Inf(1), -math.Ldexp(255, 120)}},
			} {
				x := tensor(t, f, name)
				require.Equal(t, want.shape, x.Shape, name)
				got, err := x.Float64s()
				require.NoError(t, err)
				require.Equal(t, want.x, got, name)
			}
			require.Equal(t, quant.BF16, tensor(t, f, "p").DType)
			words := tensor(t, f, "p").Data // NUM-11: subnormals and infinities pass unchanged
			require.Equal(t, []byte{0x80, 0x3f, 1, 0, 0x7f, 0x80, 0x80, 0x7f, 0x7f, 0xff}, words)
			require.Same(t, &tensor(t, f, "a").Data[0], &tensor(t, f, "a").Data[0], "a contiguous tensor is not copied")
		})
	}
}

func tensor(t *testing.T, f *File, name string) quant.Tensor {
	t.Helper()
	require.True(t, f.Has(name))
	x, err := f.Tensor(name)
	require.NoError(t, err)
	return x
}

func TestTiedHeadAliasesTheTable(t *testing.T) { // oracle: written by torch 2.15
	f, err := Open("../../../testdata/golden/tiny-e2b/bin-bf16/" + ModelFile)
	require.NoError(t, err)
	defer f.Close()
	require.Len(t, f.Names(), 161)
	e, h := tensor(t, f, "model.embed_tokens.weight"), tensor(t, f, "lm_head.weight")
	require.Equal(t, []int{320, 48}, e.Shape)
	require.Same(t, &e.Data[0], &h.Data[0])
	_, err = f.Tensor("model.embed_token.weight")
	require.ErrorContains(t, err, "model.embed_token.weight: no such tensor")
}

func TestLOAD02OtherContainersAreNamed(t *testing.T) {
	long := append([]byte{0x8a, 0x0a}, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19)
	tar := make([]byte, 1024)
	copy(tar[257:], "ustar\x0000")
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"legacy, protocol 0", []byte("L119547037146038801333356L\n.I1001\n."), "legacy form"},
		{"legacy, protocol 1", []byte("L119547037146038801333356L\n.M\xe9\x03."), "legacy form"},
		{"legacy, protocol 2", append([]byte{0x80, 2}, append(long, '.')...), "legacy form"},
		{"legacy, protocol 4", append([]byte{0x80, 4, 0x95, 13, 0, 0, 0, 0, 0, 0, 0}, append(long, '.')...), "legacy form"},
		{"bare pickle", []byte{0x80, 2, '}', '.'}, "bare pickle of protocol 2"},
		{"tar", tar, "tar form"},
		{"empty", nil, "no zip archive"},
		{"text", []byte("version https://git-lfs.github.com/spec/v1"), "no zip archive"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("m.bin", c.data)
			require.ErrorContains(t, err, "m.bin: ")
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestOpenOfMissingFile(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), ModelFile))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestEveryElementType(t *testing.T) { // hand: 40 is divisible by every element size
	for class, d := range storageClasses {
		t.Run(class, func(t *testing.T) {
			n := 40 / d.Size()
			data := make([]byte, 40)
			binary.LittleEndian.PutUint16(data[38:], 0xbeef)
			f, err := Parse("m.bin", bin(dictOf("w", tensorOf(class, "0", n, 0, []int{n}, []int{1})), map[string]string{"data/0": string(data)}))
			require.NoError(t, err)
			require.Equal(t, quant.Tensor{Name: "w", DType: d, Shape: []int{n}, Data: data}, tensor(t, f, "w"))
		})
	}
}
