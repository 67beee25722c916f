package quant

import "anelab/internal/half"

// Uniform4 palettizes m with 16 equally spaced entries between the least and the greatest weight of each group of rows,
// coremltools' mode "uniform". Indices are those of the nearest fp16 entry, the lower one on a tie.
func Uniform4(m Matrix, group int) *Grouped4 {
	rows, cols := m.Rows(), m.Cols()
	groups := (rows + group - 1) / group
	out := &Grouped4{rows: rows, cols: cols, group: group, lut: make([]float32, 16*groups), packed: make([]byte, (rows*cols+1)/2)}
	for g := range groups {
		lo, hi := g*group, min((g+1)*group, rows)
		block := make([]float32, (hi-lo)*cols)
		for r := lo; r < hi; r++ {
			m.Row(block[(r-lo)*cols:][:cols], r)
		}
		lut := out.lut[16*g:][:16]
		uniformLUT(lut, block)
		for i, w := range block {
			at := lo*cols + i
			out.packed[at>>1] |= nearest(lut, w) << (4 * (at & 1))
		}
	}
	return out
}

// uniformLUT fills lut with equally spaced values over the range of w, each rounded to fp16.
func uniformLUT(lut, w []float32) {
	lo, hi := w[0], w[0]
	for _, x := range w {
		lo, hi = min(lo, x), max(hi, x)
	}
	step := (float64(hi) - float64(lo)) / float64(len(lut)-1)
	for i := range lut {
		lut[i] = half.RoundF16(float32(float64(lo) + float64(step*float64(i))))
	}
}

// nearest is the index of the entry closest to w, the lowest on a tie.
func nearest(lut []float32, w float32) byte {
	best, at := float32(-1), 0
	for i, c := range lut {
		if d := max(c-w, w-c); best < 0 || d < best {
			best, at = d, i
		}
	}
	return byte(at)
}
