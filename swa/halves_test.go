package swa

import (
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/half"
)

func TestHalvesAreTheRowsThatLoadGives(t *testing.T) { // invariant: in runs, across the wrap of a ring and the border of what is staged
	shape := Shape{KVHeads: 2, HeadDim: 3, Elem: Float16}
	for _, s := range []Store{NewRing(shape, 5), NewLinear(shape, 20)} {
		feed(s, 5, 3)
		s.Stage(8, rows(8, 2), rows(8, 2))
		view := s.Keys().Head(1).Columns(1, 3)
		first, want := max(s.Held().Lo, 4), make([]float32, 2)
		for p := first; p < 10; {
			data, stride, count := view.Halves(p, 10-p)
			require.Positive(t, count)
			for i := range count {
				view.Load(want, p+i, 1)
				require.Equal(t, want, []float32{half.F16ToF32(data[i*stride]), half.F16ToF32(data[i*stride+1])}, "position %d", p+i)
			}
			p += count
		}
	}
	exact := NewLinear(Shape{KVHeads: 1, HeadDim: 3}, 4)
	exact.Stage(0, make([]float32, 3), make([]float32, 3))
	_, _, count := exact.Keys().Halves(0, 1)
	require.Zero(t, count, "float32 rows are not halves")
}
