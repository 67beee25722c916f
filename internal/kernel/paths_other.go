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

func gemm4Fast(out *tile, p pair, t, n int) bool                      { return false }
func gemv4WideFast(y []float64, m *Palette4, x []float64, g int) bool { return false }

func dotLanesFast(l *Lanes, x, y []float32) bool                     { return false }
func sumLanesFast(l *Lanes, x []float32) bool                        { return false }
func mulGainFast(y, x, gain []float32, r float32) bool               { return false }
func divideFast(y, x []float32, c float32) bool                      { return false }
func maxOfFast(y *[16]float32, x []float32) bool                     { return false }
func decodeI8Fast(dst []float32, src []byte, scale float32) bool     { return false }
func softCapFast(y, x []float32, limit float32) bool                 { return false }
func mixFast(o, p []float32, v []uint16, m Mixing) (heads, cols int) { return 0, 0 }
