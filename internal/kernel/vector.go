package kernel

import "math"

// AddLanes adds x to the lanes of a sum whose first number belongs to lane first mod 8.
func (l *Lanes) AddLanes(x []float32, first int) {
	for len(x) > 0 && first&7 != 0 {
		l[first&7] += float64(x[0])
		x, first = x[1:], first+1
	}
	n := len(x) &^ 7
	if n > 0 && !sumLanesFast(l, x[:n]) {
		n = 0
	}
	for i, v := range x[n:] {
		l[i&7] += float64(v)
	}
}

// MulGain is y[i] = (x[i]·r)·gain[i], two roundings on every path; y may be x.
func MulGain(y, x, gain []float32, r float32) {
	y, gain = y[:len(x)], gain[:len(x)]
	n := len(x) &^ 15
	if n > 0 && !mulGainFast(y[:n], x[:n], gain[:n], r) {
		n = 0
	}
	for i := n; i < len(x); i++ {
		y[i] = float32(float32(x[i]*r) * gain[i])
	}
}

// Divide is y[i] = x[i]/c; y may be x.
func Divide(y, x []float32, c float32) {
	y = y[:len(x)]
	n := len(x) &^ 15
	if n > 0 && !divideFast(y[:n], x[:n], c) {
		n = 0
	}
	for i := n; i < len(x); i++ {
		y[i] = x[i] / c
	}
}

// Max is the greatest number of x, −∞ of none. Where x holds a NaN the result may be any of its numbers.
func Max(x []float32) float32 {
	m, n := float32(math.Inf(-1)), len(x)&^15
	var part [16]float32
	if n > 0 && maxOfFast(&part, x[:n]) {
		for _, v := range part {
			m = max(m, v)
		}
		x = x[n:]
	}
	for _, v := range x {
		m = max(m, v)
	}
	return m
}

// DecodeI8 is dst[i] = scale·src[i] for signed bytes.
func DecodeI8(dst []float32, src []byte, scale float32) {
	src = src[:len(dst)]
	n := len(dst) &^ 15
	if n > 0 && !decodeI8Fast(dst[:n], src[:n], scale) {
		n = 0
	}
	for i := n; i < len(dst); i++ {
		dst[i] = float32(int8(src[i])) * scale
	}
}

// SoftCap is y[i] = tanh(x[i]/limit)·limit, in float32 arithmetic and to about 3e-7 of the result where there is a kernel. A result depends
// on its own operand only. y may be x.
func SoftCap(y, x []float32, limit float32) {
	y = y[:len(x)]
	n := len(x) &^ 15
	if n > 0 && !softCapFast(y[:n], x[:n], limit) {
		n = 0
	}
	var tail [16]float32
	if copy(tail[:], x[n:]) > 0 && len(x)-n < len(tail) && softCapFast(tail[:], tail[:], limit) {
		copy(y[n:], tail[:])
		return
	}
	for i := n; i < len(x); i++ {
		y[i] = float32(math.Tanh(float64(x[i]/limit))) * limit
	}
}

// Mixing is the shape of a mix of rows.
type Mixing struct {
	Heads, Columns int // of o
	Width          int // numbers from one head of o to the next
	Positions      int // numbers from one head of p to the next
	Rows           int // rows of v to add
	Stride         int // numbers from one row of v to the next
}

// MixHalves adds rows of fp16 numbers to the outputs of several heads: o[h][c] += Σ p[h][i]·v[i][c], one row after the other.
func MixHalves(o, p []float32, v []uint16, m Mixing) {
	if m.Rows == 0 {
		return
	}
	if len(o) < (m.Heads-1)*m.Width+m.Columns || len(p) < (m.Heads-1)*m.Positions+m.Rows || len(v) < (m.Rows-1)*m.Stride+m.Columns {
		panic("kernel: MixHalves: operands are shorter than their shape")
	}
	for m.Heads > 0 {
		done := m.columns(o, p, v)
		m.Heads -= done
		if m.Heads > 0 {
			o, p = o[done*m.Width:], p[done*m.Positions:]
		}
	}
}

// columns mixes all columns of the first heads and returns their number.
func (m Mixing) columns(o, p []float32, v []uint16) int {
	done := 1
	for at := 0; at < m.Columns; {
		part := m
		part.Columns -= at
		heads, n := mixFast(o[at:], p, v[at:], part)
		if n == 0 {
			for h := range done {
				part.plain(o[at+h*m.Width:], p[h*m.Positions:], v[at:])
			}
			break
		}
		done, at = heads, at+n
	}
	return done
}

// plain is the mix of one head.
func (m Mixing) plain(o, p []float32, v []uint16) {
	var row [64]float32
	for at := 0; at < m.Columns; at += len(row) {
		n := min(len(row), m.Columns-at)
		for i := range m.Rows {
			WidenF16(row[:n], v[i*m.Stride+at:][:n])
			Axpy(o[at:at+n], row[:n], p[i])
		}
	}
}
