package kernel

// Dot is Σ x[i]·y[i] in float32.
func Dot(x, y []float32) float32 {
	y = y[:len(x)]
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(x); i += 4 {
		a, b := x[i:i+4:i+4], y[i:i+4:i+4]
		s0 += float32(a[0] * b[0])
		s1 += float32(a[1] * b[1])
		s2 += float32(a[2] * b[2])
		s3 += float32(a[3] * b[3])
	}
	tail := [3]*float32{&s0, &s1, &s2}
	for k := range len(x) - i {
		*tail[k] += float32(x[i+k] * y[i+k])
	}
	return (s0 + s2) + (s1 + s3)
}

// DotPair is Dot(w, x0), Dot(w, x1), bit for bit, reading w once.
func DotPair(w, x0, x1 []float32) (float32, float32) {
	x0, x1 = x0[:len(w)], x1[:len(w)]
	var s [4]float32
	var r [4]float32
	s0, s1, s2, s3, r0, r1, r2, r3 := s[0], s[1], s[2], s[3], r[0], r[1], r[2], r[3]
	i := 0
	for ; i+4 <= len(w); i += 4 {
		a, b, c := w[i:i+4:i+4], x0[i:i+4:i+4], x1[i:i+4:i+4]
		s0 += float32(a[0] * b[0])
		r0 += float32(a[0] * c[0])
		s1 += float32(a[1] * b[1])
		r1 += float32(a[1] * c[1])
		s2 += float32(a[2] * b[2])
		r2 += float32(a[2] * c[2])
		s3 += float32(a[3] * b[3])
		r3 += float32(a[3] * c[3])
	}
	s, r = [4]float32{s0, s1, s2, s3}, [4]float32{r0, r1, r2, r3}
	for k := range len(w) - i {
		s[k] += float32(w[i+k] * x0[i+k])
		r[k] += float32(w[i+k] * x1[i+k])
	}
	return (s[0] + s[2]) + (s[1] + s[3]), (r[0] + r[2]) + (r[1] + r[3])
}

// Lanes are the 8 partial sums of the canonical structure; term i of a sum belongs to lane i mod 8.
type Lanes [8]float64

// Sum folds the lanes along the fixed tree.
func (l *Lanes) Sum() float64 {
	return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]))
}

// Dot64 is Σ x[i]·y[i] in the canonical structure. Products of two float32 numbers are exact in float64, so a fused product and sum gives
// the same bits.
func Dot64(x, y []float32) float64 {
	y = y[:len(x)]
	var l Lanes
	n := len(x) &^ 7
	if n > 0 && !dotLanesFast(&l, x[:n], y[:n]) {
		dotLanesGo(&l, x[:n], y[:n])
	}
	for k := range len(x) - n {
		l[k] += float64(float64(x[n+k]) * float64(y[n+k]))
	}
	return l.Sum()
}

func dotLanesGo(l *Lanes, x, y []float32) {
	var l0, l1, l2, l3, l4, l5, l6, l7 float64
	for i := 0; i < len(x); i += 8 {
		a, b := x[i:i+8:i+8], y[i:i+8:i+8]
		l0 += float64(float64(a[0]) * float64(b[0]))
		l1 += float64(float64(a[1]) * float64(b[1]))
		l2 += float64(float64(a[2]) * float64(b[2]))
		l3 += float64(float64(a[3]) * float64(b[3]))
		l4 += float64(float64(a[4]) * float64(b[4]))
		l5 += float64(float64(a[5]) * float64(b[5]))
		l6 += float64(float64(a[6]) * float64(b[6]))
		l7 += float64(float64(a[7]) * float64(b[7]))
	}
	*l = Lanes{l0, l1, l2, l3, l4, l5, l6, l7}
}
