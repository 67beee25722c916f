package kernel

// Strided32 is s[i] = row(i)·x for rows of len(x) that start stride apart in w, float32 sums. A product does not depend on how
// many rows there are.
func Strided32(s, w []float32, stride int, x []float32) {
	n := len(x)
	checkStrided(len(s), w, stride, n)
	if strided32Fast(s, w, stride, x) {
		return
	}
	for i := range s {
		s[i] = Dot(w[i*stride:i*stride+n], x)
	}
}

// Strided64 is Strided32 with float64 sums in the canonical structure.
func Strided64(s []float64, w []float32, stride int, x []float32) {
	n := len(x)
	checkStrided(len(s), w, stride, n)
	if strided64Fast(s, w, stride, x) {
		return
	}
	for i := range s {
		s[i] = Dot64(w[i*stride:i*stride+n], x)
	}
}

func checkStrided(rows int, w []float32, stride, n int) {
	if rows > 0 && (n < 1 || stride < 0 || len(w) < (rows-1)*stride+n) {
		panic("kernel: Strided: rows reach beyond w")
	}
}

// Axpy is y[i] += p·x[i] in float32.
func Axpy(y, x []float32, p float32) {
	x = x[:len(y)]
	n := len(y) &^ 15
	if n > 0 && !axpy32Fast(y[:n], x[:n], p) {
		n = 0
	}
	for i := n; i < len(y); i++ {
		y[i] += float32(p * x[i])
	}
}

// Axpy64 is y[i] += p·x[i] in float64; the product of two float32 numbers is exact, so every path gives the same bits.
func Axpy64(y []float64, x []float32, p float32) {
	x = x[:len(y)]
	n := len(y) &^ 15
	if n > 0 && !axpy64Fast(y[:n], x[:n], p) {
		n = 0
	}
	for i := n; i < len(y); i++ {
		y[i] += float64(float64(p) * float64(x[i]))
	}
}
