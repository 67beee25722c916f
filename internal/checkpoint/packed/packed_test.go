package packed

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/half"
	"anelab/internal/kernel"
	"anelab/quant"
)

// vector is a bf16 tensor of n numbers i/8.
func vector(name string, n int) quant.Tensor {
	var data []byte
	for i := range n {
		data = binary.LittleEndian.AppendUint16(data, half.F32ToBF16(float32(i)/8))
	}
	return quant.Tensor{Name: name, DType: quant.BF16, Shape: []int{n}, Data: data}
}

// palette is a [70, 24] matrix with index (r + k) mod 16 and tables that differ by group.
func palette() *quant.Packed {
	k := kernel.NewPalette4(70, 24)
	for i := range k.LUT {
		k.LUT[i] = float32(i%16) + float32(i/16)/4
	}
	for r := range 70 {
		for c := range 24 {
			k.Set(r, c, byte((r+c)%16))
		}
	}
	k.Seal()
	return quant.NewPacked(k, 32)
}

// write makes a small file with one tensor of every kind.
func write(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.anelab")
	w, err := Create(path, []byte(`{"a": 1}`))
	require.NoError(t, err)
	require.NoError(t, w.Dense(vector("norm.weight", 7)))
	require.NoError(t, w.Palette("q", palette()))
	table, err := quant.Dense(quant.Tensor{Name: "t", DType: quant.BF16, Shape: []int{3, 5}, Data: vector("", 15).Data})
	require.NoError(t, err)
	require.NoError(t, w.Rows8("t", table))
	require.NoError(t, w.Palette(Head, palette()))
	require.NoError(t, w.Commit())
	return path
}

func TestRoundTrip(t *testing.T) {
	f, err := Open(write(t))
	require.NoError(t, err)
	defer f.Close()
	require.True(t, Is(f.Path()))
	require.JSONEq(t, `{"a":1}`, string(f.Config()))
	require.Equal(t, []string{"norm.weight", "q", "t"}, f.Names())
	require.True(t, f.HasHead())
	require.NoError(t, f.Verify(context.Background()))
	got, err := f.Tensor("norm.weight")
	require.NoError(t, err)
	require.Equal(t, vector("norm.weight", 7), got)
	m, err := f.Matrix("q")
	require.NoError(t, err)
	want, row, wantRow := palette(), make([]float32, 24), make([]float32, 24)
	for r := range 70 {
		m.Row(row, r)
		want.Row(wantRow, r)
		require.Equal(t, wantRow, row)
	}
	require.Equal(t, want.Encoding(), m.Encoding())
	m, err = f.Matrix("t") // hand: row 1 is 5/8 … 9/8, scale 9/8/127
	require.NoError(t, err)
	m.Row(row[:5], 1)
	for i := range 5 {
		require.InDelta(t, float64(5+i)/8, row[i], 9.0/8/254+1e-6)
	}
}

func TestRefusals(t *testing.T) {
	good, err := os.ReadFile(write(t))
	require.NoError(t, err)
	n := len(good)
	directory := int(binary.LittleEndian.Uint64(good[n-32:]))
	// resealed applies a change to the directory text and makes trailer and checksum fit again
	resealed := func(old, new string) []byte {
		text := strings.Replace(string(good[directory:n-32]), old, new, 1)
		require.NotEqual(t, string(good[directory:n-32]), text)
		b := append(append([]byte{}, good[:directory]...), text...)
		b = binary.LittleEndian.AppendUint64(b, uint64(directory))
		b = binary.LittleEndian.AppendUint64(b, uint64(len(text)))
		b = binary.LittleEndian.AppendUint32(b, crc32.Checksum([]byte(text), castagnoli))
		b = binary.LittleEndian.AppendUint32(b, versionPlain)
		return append(b, endMagic...)
	}
	flipped := func(at int) []byte {
		b := append([]byte{}, good...)
		b[at] ^= 1
		return b
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"empty":             {nil, "not a packed model"},
		"other file":        {[]byte(strings.Repeat("GGUF", 30)), "not a packed model"},
		"truncated":         {good[:n-1], "no end mark"},
		"other version":     {flipped(n - 12), "version: 0, want 1 or 2; pack the checkpoint again"},
		"damaged directory": {flipped(directory + 3), "directory: checksum"},
		"trailer":           {flipped(n - 32), "directory:"},
		"wrong size":        {resealed(`"shape":[7]`, `"shape":[8]`), "norm.weight: 14 and 0 bytes, want 16 and 0"},
		"beyond the end":    {resealed(`"offset":64,`, `"offset":9964,`), "inside"},
		"overlap":           {resealed(`"offset":128,`, `"offset":64,`), "a tensor at 64"},
		"twice":             {resealed(`"name":"t"`, `"name":"q"`), "q: the name occurs twice"},
		"unknown kind":      {resealed(`"kind":"linear8"`, `"kind":"sparse9"`), `kind "sparse9"`},
		"negative shape":    {resealed(`"shape":[7]`, `"shape":[-7]`), "shape [-7]"},
		"huge shape":        {resealed(`"shape":[3,5]`, `"shape":[300000000,300000000]`), "shape"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("m.anelab", c.data)
			require.ErrorContains(t, err, "m.anelab: ")
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestDamagedWeightsAreFound(t *testing.T) {
	good, err := os.ReadFile(write(t))
	require.NoError(t, err)
	f, err := Parse("m.anelab", good)
	require.NoError(t, err)
	good[f.entries["q"].Main.Offset+9] ^= 4
	_, err = f.Matrix("q")
	require.ErrorContains(t, err, "m.anelab: q: checksum")
	good[f.entries["t"].Main.Offset] ^= 4
	_, err = f.Matrix("t")
	require.NoError(t, err, "a table that is looked up by row is checked by Verify")
	good[f.entries["q"].Main.Offset+9] ^= 4
	require.ErrorContains(t, f.Verify(context.Background()), "t: checksum")
}

func TestAbortLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.anelab")
	require.NoError(t, os.WriteFile(path, []byte("older"), 0o600))
	w, err := Create(path, []byte("{}"))
	require.NoError(t, err)
	require.NoError(t, w.Dense(vector("x", 3)))
	w.Abort()
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
	older, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "older", string(older))
}

func FuzzParse(f *testing.F) {
	good, err := os.ReadFile(write(f))
	require.NoError(f, err)
	f.Add(good)
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("fuzz", data)
		if err != nil {
			return
		}
		for _, name := range p.Names() {
			if m, err := p.Matrix(name); err == nil {
				m.Row(make([]float32, m.Cols()), m.Rows()-1)
			}
		}
	})
}
