package blob

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/coreml/mil"
	"anelab/internal/format"
)

// file is a weights file in memory.
type file struct {
	bytes.Buffer
	at int
}

func (f *file) Write(b []byte) (int, error) {
	if f.at < f.Len() {
		n := copy(f.Bytes()[f.at:], b)
		f.at += n
		return n, nil
	}
	n, err := f.Buffer.Write(b)
	f.at += n
	return n, err
}

func (f *file) Seek(offset int64, _ int) (int64, error) {
	f.at = int(offset)
	return offset, nil
}

// stream is data that are written in parts.
type stream []byte

func (s stream) Bytes() ([]byte, error) { panic("asked for all bytes of a stream") }
func (s stream) WriteTo(w io.Writer) (int64, error) {
	total := int64(0)
	for _, b := range s {
		n, err := w.Write([]byte{b})
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// three is a file of three blobs: 5 uint3 (two bytes, one padding bit), 3 fp16, 70 int8.
func three(t testing.TB) []byte {
	f := &file{}
	w := NewWriter("weight.bin", f)
	for _, c := range []struct {
		t mil.Type
		d mil.Data
		o uint64
	}{
		{mil.TensorOf(mil.UInt3, 5), Memory(mil.Pack(mil.UInt3, []int64{1, 2, 3, 4, 5})), 64},
		{mil.TensorOf(mil.Float16, 3), Memory("abcdef"), 192},
		{mil.TensorOf(mil.Int8, 7, 10), stream(bytes.Repeat([]byte{7}, 70)), 320},
	} {
		offset, err := w.Add(c.t, c.d)
		require.NoError(t, err)
		require.Equal(t, c.o, offset)
	}
	require.NoError(t, w.Close())
	return f.Bytes()
}

func TestWriterLaysBlobsOut(t *testing.T) { // hand
	data := three(t)
	require.Len(t, data, 320+64+70, "the end is not padded")
	want := make([]byte, 64)
	want[0], want[4] = 3, 2
	require.Equal(t, want, data[:64])
	meta := make([]byte, 64)
	copy(meta, []byte{0xef, 0xbe, 0xad, 0xde, 12, 0, 0, 0, 2})
	meta[16], meta[24] = 128, 1
	require.Equal(t, meta, data[64:128])
	require.Equal(t, []byte{0b11_010_001, 0b0_101_100_0}, data[128:130])
	require.Equal(t, make([]byte, 62), data[130:192])
}

func TestReaderFindsWhatWasWritten(t *testing.T) { // invariant
	f, err := Parse("weight.bin", three(t))
	require.NoError(t, err)
	require.Len(t, f.Entries, 3)
	require.Equal(t, []int64{5, 3, 70}, []int64{f.Entries[0].Count(), f.Entries[1].Count(), f.Entries[2].Count()})
	e, err := f.Check(192, mil.TensorOf(mil.Float16, 3, 1))
	require.NoError(t, err)
	require.Equal(t, "abcdef", string(f.Data(e)))
	_, ok := f.At(128)
	require.False(t, ok)
}

func TestEveryStorableTypeComesBack(t *testing.T) { // invariant
	n := 0
	for d := range mil.DType(64) {
		if !Storable(d) {
			continue
		}
		n++
		for count := int64(1); count < 10; count++ {
			out := &file{}
			w := NewWriter("w", out)
			raw := bytes.Repeat([]byte{0x5a}, int(d.Bytes(count)))
			offset, err := w.Add(mil.TensorOf(d, count), Memory(raw))
			require.NoError(t, err)
			require.NoError(t, w.Close())
			f, err := Parse("w", out.Bytes())
			require.NoError(t, err)
			e, err := f.Check(offset, mil.TensorOf(d, count))
			require.NoError(t, err)
			require.Equal(t, raw, f.Data(e))
			require.Equal(t, count, e.Count(), d)
			_, err = f.Check(offset, mil.TensorOf(d, count+8))
			require.ErrorIs(t, err, ErrSize)
		}
	}
	require.Equal(t, 17, n)
}

func TestFaultyFiles(t *testing.T) { // hand
	put := func(at int, n uint64, size int) func([]byte) []byte {
		return func(b []byte) []byte {
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], n)
			copy(b[at:at+size], word[:])
			return b
		}
	}
	for name, c := range map[string]struct {
		spoil func([]byte) []byte
		want  error
		where string
	}{
		"no bytes":                   {func(b []byte) []byte { return nil }, ErrTruncated, "header"},
		"half a header":              {func(b []byte) []byte { return b[:63] }, ErrTruncated, "header"},
		"version 1":                  {put(4, 1, 4), ErrVersion, "header"},
		"count without room":         {put(0, 1000, 4), ErrTruncated, "header"},
		"count one too high":         {put(0, 4, 4), ErrTruncated, "blob 3"},
		"count one too low":          {put(0, 2, 4), ErrTrailing, "header"},
		"sentinel":                   {put(192, 0xDEADBEEE, 4), ErrSentinel, "blob 1 at offset 192"},
		"element type":               {put(196, 99, 4), ErrType, "blob 1"},
		"size beyond the end":        {put(200, 1<<20, 8), ErrTruncated, "blob 1"},
		"size that overflows":        {put(72, 1<<64-64, 8), ErrTruncated, "blob 0"},
		"no data":                    {put(72, 0, 8), ErrSize, "blob 0"},
		"data over its own metadata": {put(208, 192, 8), ErrOverlap, "blob 1"},
		"data over the blob before":  {put(208, 128, 8), ErrOverlap, "blob 1"},
		"data not aligned":           {put(208, 257, 8), ErrOverlap, "blob 1"},
		"data offset that overflows": {put(208, 1<<64-64, 8), ErrTruncated, "blob 1"},
		"larger, over the next blob": {put(200, 70, 8), ErrSentinel, "blob 2"},
		"padding of a byte or more":  {put(88, 8, 8), ErrSize, "blob 0"},
		"cut inside the last data":   {func(b []byte) []byte { return b[:len(b)-7] }, ErrTruncated, "blob 2"},
		"cut inside the last head":   {func(b []byte) []byte { return b[:350] }, ErrTruncated, "blob 2"},
		"bytes after the last blob":  {func(b []byte) []byte { return append(b, make([]byte, 200)...) }, ErrTrailing, "header"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("dir/weight.bin", c.spoil(three(t)))
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, "dir/weight.bin: "+c.where)
			var f *format.Error
			require.True(t, errors.As(err, &f))
			require.NotEmpty(t, f.Fix)
		})
	}
}

func TestFaultyReferences(t *testing.T) { // hand
	f, err := Parse("w", three(t))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		offset uint64
		t      mil.Type
		want   error
		text   string
	}{
		"of the data":                          {128, mil.TensorOf(mil.UInt3, 5), ErrOffset, "such as 64"},
		"beyond the end":                       {1 << 40, mil.TensorOf(mil.UInt3, 5), ErrOffset, "beyond the end of the file, 454 bytes"},
		"other type":                           {64, mil.TensorOf(mil.UInt4, 5), ErrType, "a blob of uint3, want uint4"},
		"half the entries":                     {192, mil.TensorOf(mil.Float16, 2), ErrSize, "6 bytes, want 4"},
		"same bytes, other number of elements": {64, mil.TensorOf(mil.UInt3, 4), ErrSize, "1 padding bits, want 4"},
		"open shape":                           {192, mil.TensorOf(mil.Float16, mil.Unknown), ErrSize, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.Check(c.offset, c.t)
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.text)
			require.ErrorContains(t, err, "do not belong together")
		})
	}
}

func TestWriterRefusesWhatDoesNotFit(t *testing.T) { // hand
	for name, c := range map[string]struct {
		t    mil.Type
		d    mil.Data
		want error
	}{
		"too few bytes":  {mil.TensorOf(mil.Float16, 3), Memory("abcde"), ErrSize},
		"open shape":     {mil.TensorOf(mil.Float16, mil.Unknown), Memory("ab"), ErrType},
		"nothing":        {mil.TensorOf(mil.Float16, 0), Memory(""), ErrType},
		"not for a file": {mil.TensorOf(mil.Int64, 1), Memory("12345678"), ErrType},
		"broken source":  {mil.TensorOf(mil.Float16, 1), &mil.Blob{File: "gone"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewWriter("w", &file{}).Add(c.t, c.d)
			require.Error(t, err)
			if c.want != nil {
				require.ErrorIs(t, err, c.want)
			}
		})
	}
}

func TestFilesStayBelowTheirRoot(t *testing.T) { // hand
	dir := t.TempDir()
	root := filepath.Join(dir, "model")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "weights"), 0o755))
	for _, name := range []string{filepath.Join(dir, "weight.bin"), filepath.Join(root, "weights", "weight.bin")} {
		require.NoError(t, os.WriteFile(name, three(t), 0o600))
	}
	bind := func(name string) (*mil.Value, error) {
		v := &mil.Value{Type: mil.TensorOf(mil.Float16, 3), Content: &mil.Blob{File: name, Offset: 192}}
		op := &mil.Op{Type: "const", Outputs: []mil.Variable{{Name: "c"}}, Attributes: []mil.Attribute{{Name: "val", Value: v}}}
		files := &Files{Root: root}
		t.Cleanup(func() { files.Close() })
		return v, files.Bind(&mil.Program{Functions: []*mil.Function{{Name: "main", Body: &mil.Block{Ops: []*mil.Op{op}}}}})
	}
	v, err := bind("@model_path/weights/weight.bin")
	require.NoError(t, err)
	b, err := v.Bytes()
	require.NoError(t, err)
	require.Equal(t, "abcdef", string(b))
	for _, bad := range []string{"@model_path/../weight.bin", "@model_path//weights/weight.bin", "weights/weight.bin", "/etc/hostname", "@model_path/", `@model_path/..\weight.bin`, "@model_path/C:/w", "@model_path/weights/../../weight.bin"} {
		_, err := bind(bad)
		require.ErrorIs(t, err, ErrName, bad)
	}
	_, err = bind("@model_path/weights/other.bin")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "main/c (const)/val")
}

func FuzzParse(f *testing.F) {
	whole := three(f)
	f.Add(whole)
	f.Add(whole[:100])
	f.Add([]byte{1, 0, 0, 0, 2, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := Parse("fuzz", data)
		if err != nil {
			return
		}
		end := uint64(headSize)
		for _, e := range w.Entries {
			if e.Offset < end || e.DataOffset < e.Offset+headSize {
				t.Fatalf("blob at %d overlaps what ends at %d", e.Offset, end)
			}
			if n := len(w.Data(e)); uint64(n) != e.SizeBytes {
				t.Fatal(fmt.Sprint("size ", n))
			}
			if e.Count() < 0 {
				t.Fatal("negative count")
			}
			end = e.DataOffset + e.SizeBytes
		}
	})
}
