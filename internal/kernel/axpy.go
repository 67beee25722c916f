package kernel

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
