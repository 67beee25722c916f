package quant

import "fmt"

// Matrix is a weight of shape [Rows, Cols] = [out, in]. Implementations are immutable and safe for concurrent use.
type Matrix interface {
	Rows() int
	Cols() int
	Bytes() int64             // stored size
	Encoding() Encoding       //
	Row(dst []float32, r int) // dst [Cols] = row r, decoded
	MulVec(y, x []float32)    // y [Rows] = W·x [Cols]; float32 sums in index order: the plain reference
}

// mulVecRows is MulVec for any matrix that can give its rows.
func mulVecRows(y []float32, m Matrix, x []float32) {
	if len(y) != m.Rows() || len(x) != m.Cols() {
		panic("quant: MulVec: want y [Rows] and x [Cols]")
	}
	row := make([]float32, m.Cols())
	for r := range y {
		m.Row(row, r)
		var s float32
		for i, w := range row {
			s += float32(w * x[i])
		}
		y[r] = s
	}
}

// mostElements bounds what a shape from outside may claim, so that sizes computed from it do not overflow.
const mostElements = 1 << 40

// checkShape refuses shapes that no stored matrix has.
func checkShape(kind string, rows, cols int) error {
	if rows < 1 || cols < 1 || int64(rows) > mostElements/int64(cols) {
		return fmt.Errorf("quant: %s [%d, %d], want at least one element and at most 2^40", kind, rows, cols)
	}
	return nil
}
