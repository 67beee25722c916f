package swa

import (
	"anelab/internal/half"
	"anelab/internal/kernel"
)

// Elem is the type that a store keeps its numbers in.
type Elem uint8

// Stores of the pinned modes keep 16 bits, which are exact there; float32 may be asked to, at the price of one rounding.
const (
	Float32 Elem = iota
	Float16
	BFloat16
)

// Bytes is the size of one number.
func (e Elem) Bytes() int {
	if e == Float32 {
		return 4
	}
	return 2
}

// round narrows x in place to the type.
func (e Elem) round(x []float32) {
	switch e {
	case Float16:
		for i, v := range x {
			x[i] = half.RoundF16(v)
		}
	case BFloat16:
		for i, v := range x {
			x[i] = half.BF16ToF32(half.F32ToBF16(v))
		}
	}
}

// cells is memory of one Elem, or of one byte a number with a scale per head row (see [Form]).
type cells struct {
	elem  Elem
	f     []float32
	h     []uint16
	bytes *byteCells
}

func newCells(s Shape, n int) cells {
	switch {
	case s.Form.Bytes:
		return cells{elem: s.Elem, bytes: newByteCells(s.HeadDim, n)}
	case s.Elem == Float32:
		return cells{f: make([]float32, n)}
	}
	return cells{elem: s.Elem, h: make([]uint16, n)}
}

// len is the number of cells.
func (c *cells) len() int {
	if c.bytes != nil {
		return len(c.bytes.q)
	}
	return len(c.f) + len(c.h)
}

// resize sets the length, keeping memory that is large enough and not its content.
func (c *cells) resize(n int) {
	switch {
	case c.bytes != nil:
		c.bytes.resize(n)
	case c.elem == Float32 && cap(c.f) >= n:
		c.f = c.f[:n]
	case c.elem != Float32 && cap(c.h) >= n:
		c.h = c.h[:n]
	default:
		*c = newCells(Shape{Elem: c.elem}, n)
	}
}

// put stores numbers from cell at on.
func (c *cells) put(at int, src []float32) {
	switch {
	case c.bytes != nil:
		c.bytes.put(at, src)
	case c.elem == Float32:
		copy(c.f[at:at+len(src)], src)
	case c.elem == Float16:
		kernel.EncodeF16(c.h[at:at+len(src)], src)
	default:
		for i, v := range src {
			c.h[at+i] = half.F32ToBF16(v)
		}
	}
}

// get widens cells from at on.
func (c *cells) get(dst []float32, at int) {
	switch {
	case c.bytes != nil:
		c.bytes.get(dst, at)
		c.elem.round(dst)
	case c.elem == Float32:
		copy(dst, c.f[at:at+len(dst)])
	case c.elem == Float16:
		kernel.WidenF16(dst, c.h[at:at+len(dst)])
	default:
		kernel.WidenBF16(dst, c.h[at:at+len(dst)])
	}
}

// move copies n cells of another store of the same type.
func (c *cells) move(at int, src *cells, from, n int) {
	switch {
	case c.bytes != nil:
		c.bytes.move(at, src.bytes, from, n)
	case c.elem == Float32:
		copy(c.f[at:at+n], src.f[from:from+n])
	default:
		copy(c.h[at:at+n], src.h[from:from+n])
	}
}
