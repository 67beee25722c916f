package dense

import (
	"gorgonia.org/tensor"

	"anelab/internal/npy"
	"anelab/parity"
	"anelab/parity/golden"
)

// New wraps row-major values; the tensor shares them.
func New(values []float32, shape ...int) *tensor.Dense {
	n := 1
	for _, d := range shape {
		n *= d
	}
	if n != len(values) {
		panic("dense: New: the shape does not hold the values")
	}
	if len(shape) == 0 { // gorgonia has no scalar of a slice
		shape = []int{1}
	}
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(values))
}

// OfTap wraps a tap; it is valid as long as the tap is.
func OfTap(t parity.Tap) *tensor.Dense { return New(t.Data, t.Shape...) }

// OfCase returns the tensor behind a key of a golden case, "hidden.3"; nil when it was not recorded.
func OfCase(c *golden.Case, key string) *tensor.Dense {
	values, shape, ok := c.Tensor(key)
	if !ok {
		return nil
	}
	return New(values, shape...)
}

// ReadNPY reads an array of any numeric type as float32.
func ReadNPY(path string) (*tensor.Dense, error) {
	t, err := npy.Read(path)
	if err != nil {
		return nil, err
	}
	values, err := t.Floats()
	if err != nil {
		return nil, err
	}
	return New(values, t.Shape...), nil
}

// WriteNPY writes a tensor for numpy.load, whatever its access pattern.
func WriteNPY(path string, d *tensor.Dense) error {
	values, shape := Contiguous(d)
	return npy.Write(path, shape, values)
}

// Contiguous returns the values of a tensor in the row-major order of its shape. A view or a transposed tensor is materialised
// first: its Data alone would be that of the tensor it was cut from.
func Contiguous(d *tensor.Dense) (values []float32, shape []int) {
	if d.RequiresIterator() || !d.DataOrder().IsRowMajor() {
		d = d.Materialize().(*tensor.Dense)
	}
	values, ok := d.Data().([]float32)
	if !ok {
		panic("dense: Contiguous: want float32")
	}
	return values, d.Shape().Clone()
}
