//go:build !amd64 || purego

package kernel

// Dense weights and streams have no assembly here: generic Go is all there is.

func rows32Fast(y, w, x []float32, n, t int) bool              { return false }
func rows64Fast(y []float64, w, x []float32, n, t int) bool    { return false }
func axpy32Fast(y, x []float32, p float32) bool                { return false }
func axpy64Fast(y []float64, x []float32, p float32) bool      { return false }
func axpy4Fast(y, x []float32, stride int, p *[4]float32) bool { return false }
func expShiftFast(y, x []float32, m float32) bool              { return false }
func geluMulFast(y, x, z []float32) bool                       { return false }
func sumStreamsFast(b []byte) (uint64, bool)                   { return 0, false }
func digitsFast(dst []byte, x []float32) bool                  { return false }

func gemm4Fast(tile *[gemmInputs * 2 * GroupRows]float32, m *Palette4, x *Digits, at [3]int) bool {
	return false
}
func gemv4WideFast(y []float64, m *Palette4, x []float64, g int) bool { return false }
