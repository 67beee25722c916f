package bundle

import (
	"encoding/binary"
	"fmt"
	"math"

	"anelab/internal/checkpoint/mapped"
	"anelab/internal/format"
	"anelab/internal/half"
)

// table is int8 rows with one fp16 scale each.
type table struct {
	cells, scales *mapped.File
	cols          int
	factor        float32 // what every row is multiplied with: embed_scale or per_layer_embed_scale
}

// openTable maps the two files of a table and checks their sizes.
func openTable(dir mapped.Folder, name string, rows, cols int) (*table, error) {
	cells, err := openSized(dir, name+"_q8.bin", int64(rows)*int64(cols), fmt.Sprintf("%d rows of %d bytes", rows, cols))
	if err != nil {
		return nil, err
	}
	scales, err := openSized(dir, name+"_scales.bin", int64(rows)*2, fmt.Sprintf("%d fp16 scales", rows))
	if err != nil {
		cells.Close()
		return nil, err
	}
	return &table{cells: cells, scales: scales, cols: cols}, nil
}

func openSized(dir mapped.Folder, name string, size int64, what string) (*mapped.File, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, &format.Error{Path: dir.Path(name), Err: err, Fix: "a bundle needs its tables; copy them from the converter's output"}
	}
	if n := len(f.Data); int64(n) != size {
		f.Close()
		return nil, &format.Error{Path: f.Path, Got: fmt.Sprintf("%d bytes", n), Want: fmt.Sprintf("%d: %s", size, what),
			Fix: "the table is cut short, or made for another model than " + ConfigName + " says"}
	}
	return f, nil
}

// row fills x with a scaled row (spec forward.md §6.1): the scale is folded in float32, the product rounded once to fp16.
func (t *table) row(x []float32, i int) {
	t.scaled(x, i, t.factor)
	for j, v := range x {
		x[j] = half.RoundF16(v)
	}
}

// scaled fills x with row i times a factor.
func (t *table) scaled(x []float32, i int, factor float32) {
	scale := half.F16ToF32(binary.LittleEndian.Uint16(t.scales.Data[2*i:])) / 127 * factor
	for j, q := range t.cells.Data[i*t.cols : (i+1)*t.cols] {
		x[j] = float32(int8(q)) * scale
	}
}

func (t *table) close() {
	if t != nil {
		t.cells.Close()
		t.scales.Close()
	}
}

// QuantizeRow writes a row of a table and returns its fp16 scale: the largest magnitude goes to ±127 (spec forward.md §6.1).
func QuantizeRow(cells []int8, row []float32) (scale uint16) {
	peak := float32(1e-8)
	for _, v := range row {
		peak = max(peak, float32(math.Abs(float64(v))))
	}
	scale = half.F32ToF16(peak)
	for i, v := range row {
		cells[i] = int8(max(-127, min(127, math.RoundToEven(float64(v*127/half.F16ToF32(scale))))))
	}
	return scale
}
