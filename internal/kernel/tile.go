package kernel

// Rows32 multiplies 4 weight rows w [4, n] with every row of x [t, n]: y [t, 4] with y[i·4+r] = w[r]·x[i], float32 sums.
// A product depends on its two rows only, not on t.
func Rows32(y, w, x []float32, n int) {
	t := checkRows(len(y), w, x, n)
	if !rows32Fast(y, w, x, n, t) {
		rows32Go(y, w, x, n, t)
	}
}

// Rows64 is Rows32 with float64 sums in the canonical structure, the same bits on every path.
func Rows64(y []float64, w, x []float32, n int) {
	t := checkRows(len(y), w, x, n)
	if !rows64Fast(y, w, x, n, t) {
		rows64Go(y, w, x, n, t)
	}
}

func checkRows(y int, w, x []float32, n int) int {
	if n < 1 || len(w) != 4*n || len(x)%n != 0 || y != 4*(len(x)/n) {
		panic("kernel: Rows: want w [4, n], x [t, n] and y [t, 4]")
	}
	return len(x) / n
}

func rows32Go(y, w, x []float32, n, t int) {
	for r := range 4 {
		row, i := w[r*n:(r+1)*n], 0
		for ; i+2 <= t; i += 2 {
			y[i*4+r], y[(i+1)*4+r] = DotPair(row, x[i*n:(i+1)*n], x[(i+1)*n:(i+2)*n])
		}
		if i < t {
			y[i*4+r] = Dot(row, x[i*n:(i+1)*n])
		}
	}
}

func rows64Go(y []float64, w, x []float32, n, t int) {
	for r := range 4 {
		for i := range t {
			y[i*4+r] = Dot64(w[r*n:(r+1)*n], x[i*n:(i+1)*n])
		}
	}
}
