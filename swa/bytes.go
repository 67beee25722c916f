package swa

import (
	"math"

	"anelab/internal/half"
)

// byteCells holds head rows of d numbers as signed bytes: number = byte · scale, the scale in fp16, the largest magnitude at 127.
type byteCells struct {
	d     int
	q     []int8
	scale []float32 // one per head row, representable in fp16
}

func newByteCells(d, n int) *byteCells {
	return &byteCells{d: d, q: make([]int8, n), scale: make([]float32, n/d)}
}

func (c *byteCells) resize(n int) {
	if cap(c.q) < n {
		*c = *newByteCells(c.d, n)
		return
	}
	c.q, c.scale = c.q[:n], c.scale[:n/c.d]
}

// put stores whole head rows from cell at on.
func (c *byteCells) put(at int, src []float32) {
	for ; len(src) > 0; at, src = at+c.d, src[c.d:] {
		var most float32
		for _, v := range src[:c.d] {
			most = max(most, float32(math.Abs(float64(v))))
		}
		scale := half.RoundF16(most / 127)
		c.scale[at/c.d] = scale
		for i, v := range src[:c.d] {
			c.q[at+i] = toByte(v, scale)
		}
	}
}

// toByte is v in units of scale, to the nearest and at most ±127: the scale itself was rounded. A scale of zero holds zeros.
func toByte(v, scale float32) int8 {
	if scale == 0 {
		return 0
	}
	return int8(max(-127, min(127, math.RoundToEven(float64(v)/float64(scale)))))
}

// get reads numbers of one head row from cell at on.
func (c *byteCells) get(dst []float32, at int) {
	scale := c.scale[at/c.d]
	for i := range dst {
		dst[i] = float32(c.q[at+i]) * scale
	}
}

func (c *byteCells) move(at int, src *byteCells, from, n int) {
	copy(c.q[at:at+n], src.q[from:from+n])
	copy(c.scale[at/c.d:(at+n)/c.d], src.scale[from/c.d:])
}
