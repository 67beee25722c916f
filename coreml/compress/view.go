package compress

import (
	"fmt"

	"anelab/coreml/mil"
	"anelab/quant"
)

// table is a constant as a matrix whose rows or columns are its channels.
type table struct {
	quant.Matrix
	shape   []int64
	channel int // dimension of the channels
	axis    int // of the matrix: 0 rows, 1 columns
}

// elementTypes are the weights that package quant reads.
var elementTypes = map[mil.DType]quant.DType{mil.Float16: quant.F16, mil.Float32: quant.F32}

// view reads a weight as a matrix. Without groups any way of cutting it into rows will do.
func view(w *Weight, grouped grouping) (*table, error) {
	v := &table{shape: w.Type.Shape, channel: w.Axis}
	before, after := product(v.shape[:w.Axis]), product(v.shape[w.Axis+1:])
	rows, cols := v.shape[w.Axis], after
	switch {
	case before == 1:
	case after == 1:
		rows, cols, v.axis = before, v.shape[w.Axis], 1
	case grouped == byChannel:
		return nil, fmt.Errorf("its channels, dimension %d of %s, are neither rows nor columns", w.Axis, mil.ShapeString(v.shape))
	default:
		rows, cols, v.channel = v.shape[0], product(v.shape[1:]), 0
	}
	data, err := w.Parts[0].Bytes()
	if err != nil {
		return nil, err
	}
	v.Matrix, err = quant.Dense(quant.Tensor{Name: w.Name, DType: elementTypes[w.Type.DType], Shape: []int{int(rows), int(cols)}, Data: data})
	return v, err
}

// grouping says whether channels matter.
type grouping uint8

const (
	whole grouping = iota
	byChannel
)

func product(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	return n
}
