package arith

import (
	"sync"

	"anelab/internal/kernel"
	"anelab/quant"
)

// palette32 is Linear of the f32 mode for packed palettes: a row of the job is a pair of groups.
type palette32 struct {
	y []float32
	m *kernel.Palette4
	x kernel.Digits
}

var palettes32 = sync.Pool{New: func() any { return new(palette32) }}

func (a *f32) palette(y []float32, w *quant.Packed, x []float32, t int) {
	j := palettes32.Get().(*palette32)
	j.y, j.m = y, w.Kernel()
	j.x.Set(x, t)
	a.pool.Do(j.m.Groups()/2, pairsPerGrain(j.m, t), j)
	j.y, j.m = nil, nil
	palettes32.Put(j)
}

func (j *palette32) Run(lo, hi int) { kernel.Palette4Rows(j.y, j.m, &j.x, 2*lo, 2*hi) }

// pairsPerGrain is how many pairs of groups a core takes at a time: some 64 KiB of indices for one input.
func pairsPerGrain(m *kernel.Palette4, t int) int { return max(1, 1<<16/(2*m.Stride()*max(t/4, 1))) }

// paletteBatch is the number of rows from which decoding a palette row once pays more than reading indices for every row.
const paletteBatch = 4

// palette64 is Linear of the pinned modes for packed palettes, one input at a time.
type palette64 struct {
	a *rounded
	y []float32
	m *kernel.Palette4
	x []float64
}

var palettes64 = sync.Pool{New: func() any { return new(palette64) }}

func (a *rounded) paletteWide(y []float32, w *quant.Packed, x []float32) {
	j := palettes64.Get().(*palette64)
	j.a, j.y, j.m = a, y, w.Kernel()
	if n := j.m.Blocks() * kernel.BlockCols; cap(j.x) < n {
		j.x = make([]float64, n)
	} else {
		j.x = j.x[:n]
	}
	for i, v := range x {
		j.x[i] = float64(v)
	}
	clear(j.x[len(x):])
	a.pool.Do(j.m.Groups(), 2*pairsPerGrain(j.m, 1), j)
	j.a, j.y, j.m = nil, nil, nil
	palettes64.Put(j)
}

func (j *palette64) Run(lo, hi int) {
	buf, wide := rowBuffer(j.m.Cols), wideBuffer(kernel.GroupRows)
	defer rowBuffers.Put(buf)
	defer wideBuffers.Put(wide)
	for g := lo; g < hi; g++ {
		sums := (*wide)[:kernel.GroupRows]
		kernel.Palette4Wide(sums, j.m, j.x, *buf, [2]int{g, g + 1})
		for r := g * kernel.GroupRows; r < min((g+1)*kernel.GroupRows, j.m.Rows); r++ {
			j.y[r] = j.a.narrow(sums[r-g*kernel.GroupRows])
		}
	}
}
