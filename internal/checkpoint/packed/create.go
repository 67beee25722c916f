package packed

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"

	"anelab/internal/atomicfile"
	"anelab/internal/half"
	"anelab/quant"
)

// Writer writes a packed model in one pass. The file appears under its name only by Commit; Abort leaves nothing behind.
type Writer struct {
	path string
	file *atomicfile.File
	w    *bufio.Writer
	at   int64
	dir  directory
	err  error
}

// Create starts a file beside path; config is the text of config.json.
func Create(path string, config []byte) (*Writer, error) {
	f, err := atomicfile.Create(path)
	if err != nil {
		return nil, err
	}
	w := &Writer{path: path, file: f, w: bufio.NewWriterSize(f, 1<<20), dir: directory{Config: json.RawMessage(config)}}
	w.write([]byte(magic))
	return w, w.err
}

// Choose notes how a converter wrote the model.
func (w *Writer) Choose(c Choices) { w.dir.Choices = c.words() }

func (w *Writer) write(b []byte) {
	if w.err == nil {
		_, w.err = w.w.Write(b)
		w.at += int64(len(b))
	}
}

// extent writes aligned bytes in pieces and returns where they are.
func (w *Writer) extent(pieces func(yield func([]byte) bool)) extent {
	w.write(make([]byte, (alignment-w.at%alignment)%alignment))
	x := extent{Offset: w.at}
	pieces(func(b []byte) bool {
		x.CRC32C = crc32.Update(x.CRC32C, castagnoli, b)
		w.write(b)
		return w.err == nil
	})
	x.Size = w.at - x.Offset
	return x
}

// whole is the bytes in one piece.
func whole(b []byte) func(func([]byte) bool) { return func(yield func([]byte) bool) { yield(b) } }

// Dense adds a tensor as it is.
func (w *Writer) Dense(t quant.Tensor) error {
	w.dir.Tensors = append(w.dir.Tensors, entry{Name: t.Name, Kind: kindDense, DType: t.DType.String(), Shape: t.Shape, Main: w.extent(whole(t.Data))})
	return w.err
}

// Palette adds a packed palette.
func (w *Writer) Palette(name string, m *quant.Packed) error {
	k := m.Kernel()
	tables := make([]byte, 0, 2*len(k.LUT))
	for _, v := range k.LUT {
		tables = binary.LittleEndian.AppendUint16(tables, half.F32ToF16(v))
	}
	w.dir.Tensors = append(w.dir.Tensors, entry{Name: name, Kind: kindPalette4, Shape: []int{k.Rows, k.Cols}, Group: m.Encoding().Group,
		Main: w.extent(whole(k.Packed)), Aux: w.extent(whole(tables))})
	return w.err
}

// Rows8 adds a table as signed bytes with one scale per row, the largest magnitude over 127, reading m row by row.
func (w *Writer) Rows8(name string, m quant.Matrix) error {
	row := make([]float32, m.Cols())
	return w.Bytes8(name, [2]int{m.Rows(), m.Cols()}, func(r int, line []byte) float32 {
		m.Row(row, r)
		return quantizeRow(line, row)
	})
}

// Bytes8 adds a table of shape [rows, cols] whose rows are made on the way: fill writes the signed bytes of row r and returns their
// scale.
func (w *Writer) Bytes8(name string, shape [2]int, fill func(r int, line []byte) float32) error {
	line, scales := make([]byte, shape[1]), make([]byte, 0, 4*shape[0])
	main := w.extent(func(yield func([]byte) bool) {
		for r := range shape[0] {
			scales = binary.LittleEndian.AppendUint32(scales, math.Float32bits(fill(r, line)))
			if !yield(line) {
				return
			}
		}
	})
	w.dir.Tensors = append(w.dir.Tensors, entry{Name: name, Kind: kindLinear8, Shape: shape[:], Main: main, Aux: w.extent(whole(scales))})
	return w.err
}

// quantizeRow fills line with round(x·127/peak) and returns the scale that undoes it.
func quantizeRow(line []byte, row []float32) float32 {
	var peak float32
	for _, v := range row {
		peak = max(peak, v, -v)
	}
	if peak == 0 {
		clear(line)
		return 0
	}
	for i, v := range row {
		line[i] = byte(int8(math.RoundToEven(float64(v) * 127 / float64(peak))))
	}
	return peak / 127
}

// Commit writes the directory, makes the file durable and gives it its name.
func (w *Writer) Commit() error {
	text, err := json.Marshal(w.dir)
	if err != nil {
		w.err = err
	}
	offset := w.at
	w.write(text)
	t := binary.LittleEndian.AppendUint64(nil, uint64(offset))
	t = binary.LittleEndian.AppendUint64(t, uint64(len(text)))
	t = binary.LittleEndian.AppendUint32(t, crc32.Checksum(text, castagnoli))
	t = binary.LittleEndian.AppendUint32(t, w.dir.version())
	w.write(append(t, endMagic...))
	if w.err == nil {
		w.err = w.w.Flush()
	}
	if w.err != nil {
		w.Abort()
	} else {
		w.err = w.file.Commit()
	}
	if w.err != nil {
		return fmt.Errorf("packing %s: %w", w.path, w.err)
	}
	return nil
}

// Abort removes what was written.
func (w *Writer) Abort() { w.file.Discard() }
