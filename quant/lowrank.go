package quant

import (
	"fmt"

	"gonum.org/v1/gonum/mat"
)

// LowRank is m [heads·d, cols] with the d rows of each head replaced by their best approximation of the given rank: the singular
// vectors of the largest singular values, head by head (PALU). A row of the product is then d numbers made of rank coordinates.
// The result is dense; its Bytes are those of the two factors in fp16.
func LowRank(m Matrix, rank, d int) (Matrix, error) {
	if d < 1 || m.Rows()%d != 0 {
		return nil, fmt.Errorf("quant: low rank of %d rows, not a whole number of heads of %d", m.Rows(), d)
	}
	if rank < 1 || rank > min(d, m.Cols()) {
		return nil, fmt.Errorf("rank %d of a head of [%d, %d]; want 1 to %d", rank, d, m.Cols(), min(d, m.Cols()))
	}
	out := &lowRank{rows: m.Rows(), cols: m.Cols(), rank: rank, heads: m.Rows() / d, data: make([]float32, m.Rows()*m.Cols())}
	for h := range out.heads {
		if err := truncate(out.data[h*d*m.Cols():(h+1)*d*m.Cols()], m, h*d, rank); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// truncate fills dst [d, cols] with the approximation of the rows of m from row first on.
func truncate(dst []float32, m Matrix, first, rank int) error {
	cols := m.Cols()
	d := len(dst) / cols
	a := mat.NewDense(d, cols, nil)
	row := make([]float32, cols)
	for r := range d {
		m.Row(row, first+r)
		for c, v := range row {
			a.Set(r, c, float64(v))
		}
	}
	var svd mat.SVD
	if !svd.Factorize(a, mat.SVDThin) {
		return fmt.Errorf("quant: singular values of rows %d to %d did not converge: are the weights finite?", first, first+d-1)
	}
	var u, v, low mat.Dense
	svd.UTo(&u)
	svd.VTo(&v)
	values := svd.Values(nil)
	for c := range rank {
		for r := range d {
			u.Set(r, c, u.At(r, c)*values[c])
		}
	}
	low.Mul(u.Slice(0, d, 0, rank), v.Slice(0, cols, 0, rank).T())
	for r := range d {
		for c := range cols {
			dst[r*cols+c] = float32(low.At(r, c))
		}
	}
	return nil
}

// lowRank is a matrix of low rank, multiplied out.
type lowRank struct {
	rows, cols, rank, heads int
	data                    []float32 // [rows, cols]
}

func (m *lowRank) Rows() int              { return m.rows }
func (m *lowRank) Cols() int              { return m.cols }
func (m *lowRank) Bytes() int64           { return 2 * int64(m.rank) * int64(m.rows+m.heads*m.cols) }
func (m *lowRank) Encoding() Encoding     { return DenseF32 }
func (m *lowRank) Row(y []float32, r int) { copy(y, m.data[r*m.cols:(r+1)*m.cols]) }
func (m *lowRank) MulVec(y, x []float32)  { mulVecRows(y, m, x) }
