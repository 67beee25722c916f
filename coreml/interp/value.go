package interp

import (
	"sync"

	"anelab/coreml/mil"
	"anelab/quant"
)

// value is what a name stands for. Constants are shared by all calls; they are decoded when an op first asks for their elements.
type value struct {
	dtype   mil.DType
	shape   []int
	literal *mil.Value // as the program holds it; nil for results
	weight  *weight    // floating constants in their stored form

	once  sync.Once
	array *array // set for results; decoded on demand for constants
	err   error
}

// result is the value of an array.
func result(a *array) *value { return &value{dtype: a.dtype, shape: a.shape, array: a} }

// typ is the type of the value.
func (v *value) typ() mil.Type {
	if v.literal != nil {
		return v.literal.Type
	}
	return mil.TensorOf(v.dtype, sizes(v.shape)...)
}

// reshaped is the same elements under another shape; a constant stays in its stored form.
func (v *value) reshaped(shape []int) (*value, error) {
	if v.weight != nil {
		return &value{dtype: v.dtype, shape: shape, weight: v.weight}, nil
	}
	a, err := v.dense()
	if err != nil {
		return nil, err
	}
	return result(a.reshape(shape...)), nil
}

// dense is the elements.
func (v *value) dense() (*array, error) {
	v.once.Do(func() {
		switch {
		case v.array != nil:
		case v.weight != nil:
			v.array = ofFloats(v.dtype, v.weight.dense(), v.shape...)
		default:
			v.array, v.err = decode(v.literal)
		}
	})
	return v.array, v.err
}

// matrix is the value as a matrix of so many rows: a constant in its stored form, or a view of a result.
func (v *value) matrix(rows int) (quant.Matrix, error) {
	if v.weight != nil {
		return v.weight.matrix(rows), nil
	}
	a, err := v.dense()
	if err != nil {
		return nil, err
	}
	return rowsOf(a.flat(), rows), nil
}

// decode reads a constant that is given in the program or lies in a file.
func decode(v *mil.Value) (*array, error) {
	packed, err := v.Bytes()
	if err != nil {
		return nil, err
	}
	d, shape := v.Type.DType, shapeOf(v.Type.Shape)
	a := newArray(d, shape...)
	for i := range a.floats {
		a.floats[i] = float32(mil.Float(d, packed, int64(i)))
	}
	for i := range a.ints {
		a.ints[i] = int32(mil.Element(d, packed, int64(i)))
	}
	return a, nil
}

// rows is a matrix in memory whose rows start a stride apart.
type rows struct {
	data               []float32
	count, len, stride int
}

func rowsOf(data []float32, count int) *rows {
	r := &rows{data: data, count: count}
	if count > 0 {
		r.len = len(data) / count
	}
	r.stride = r.len
	return r
}

// Rows implements quant.Matrix.
func (r *rows) Rows() int { return r.count }

// Cols implements quant.Matrix.
func (r *rows) Cols() int { return r.len }

// Bytes implements quant.Matrix.
func (r *rows) Bytes() int64 { return 4 * int64(r.count*r.len) }

// Encoding implements quant.Matrix.
func (r *rows) Encoding() quant.Encoding { return quant.DenseF32 }

// Row implements quant.Matrix.
func (r *rows) Row(dst []float32, i int) { copy(dst[:r.len], r.data[i*r.stride:]) }

// Memory implements arith.InMemory.
func (r *rows) Memory() (data []float32, stride int) { return r.data, r.stride }

// MulVec implements quant.Matrix.
func (r *rows) MulVec(y, x []float32) { mulVec(y, r, x) }

// mulVec is the plain product, row by row.
func mulVec(y []float32, m quant.Matrix, x []float32) {
	row := make([]float32, m.Cols())
	for i := range y {
		m.Row(row, i)
		y[i] = 0
		for k, w := range row {
			y[i] += float32(w * x[k])
		}
	}
}
