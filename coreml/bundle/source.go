package bundle

import (
	"anelab/gemma4"
	"anelab/internal/format"
	"anelab/quant"
)

// Path implements [gemma4.Source].
func (t *Tables) Path() string { return t.embed.cells.Path }

// named is the table under the name that checkpoints have for it.
func (t *Tables) named(name string) *table {
	switch name {
	case "embed_tokens.weight":
		return t.embed
	case "embed_tokens_per_layer.weight":
		return t.ple
	}
	return nil
}

// Has implements [gemma4.Source].
func (t *Tables) Has(name string) bool { return t.named(name) != nil }

// Describe is the type and shape of a table, without bytes.
func (t *Tables) Describe(name string) (quant.Tensor, error) {
	x := t.named(name)
	if x == nil {
		return quant.Tensor{}, t.fault(name, "no such table")
	}
	return quant.Tensor{Name: name, DType: quant.I8, Shape: []int{x.Rows(), x.Cols()}}, nil
}

// Tensor implements [gemma4.Source]: a bundle holds no table in one type.
func (t *Tables) Tensor(name string) (quant.Tensor, error) {
	return quant.Tensor{}, t.fault(name, "int8 rows with a scale each")
}

func (t *Tables) fault(name, got string) error {
	return &format.Error{Path: t.Path(), Field: name, Got: got, Fix: "take other weights from the checkpoint, or from the chunks"}
}

// Matrix implements [gemma4.MatrixSource]. Rows are as the checkpoint has them, up to their encoding: not yet multiplied with √width.
func (t *Tables) Matrix(name string) (quant.Matrix, error) {
	x := t.named(name)
	if x == nil {
		return nil, t.fault(name, "no such table")
	}
	return x, nil
}

// Head implements [gemma4.MatrixSource]: the head is in the last chunk.
func (t *Tables) Head() (quant.Matrix, error) { return nil, nil }

// Rows implements [quant.Matrix].
func (t *table) Rows() int { return len(t.scales.Data) / 2 }

// Cols implements [quant.Matrix].
func (t *table) Cols() int { return t.cols }

// Bytes implements [quant.Matrix].
func (t *table) Bytes() int64 { return int64(len(t.cells.Data) + len(t.scales.Data)) }

// Encoding implements [quant.Matrix].
func (t *table) Encoding() quant.Encoding { return quant.Encoding{DType: quant.I8, Bits: 8} }

// Row implements [quant.Matrix].
func (t *table) Row(dst []float32, r int) { t.scaled(dst, r, 1) }

// MulVec implements [quant.Matrix].
func (t *table) MulVec(y, x []float32) {
	row := make([]float32, t.cols)
	for r := range y {
		t.Row(row, r)
		var sum float32
		for i, w := range row {
			sum += float32(w * x[i])
		}
		y[r] = sum
	}
}

var _ gemma4.MatrixSource = (*Tables)(nil)
