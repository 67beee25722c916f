//go:build !amd64 || purego

package kernel

// cpuPaths is empty: generic Go is all there is.
func cpuPaths() []path { return nil }

func rows32Fast(y, w, x []float32, n, t int) bool                                   { return false }
func rows64Fast(y []float64, w, x []float32, n, t int) bool                         { return false }
func axpy32Fast(y, x []float32, p float32) bool                                     { return false }
func axpy64Fast(y []float64, x []float32, p float32) bool                           { return false }
func decodeFast(f format, dst []float32, src []byte) bool                           { return false }
func gemv4Fast(y []float32, m *Palette4, x *Digits, g, i int) bool                  { return false }
func gemm4Fast(tile *[8 * GroupRows]float32, m *Palette4, x *Digits, g, t int) bool { return false }
func gemv4WideFast(y []float64, m *Palette4, x []float64, g int) bool               { return false }
func digitsFast(dst []byte, x []float32) bool                                       { return false }
func encodeF16Fast(dst []uint16, src []float32) bool                                { return false }
func widenFast(f format, dst []float32, src []uint16) bool                          { return false }
func axpy4Fast(y, x []float32, stride int, p *[4]float32) bool                      { return false }
func expShiftFast(y, x []float32, m float32) bool                                   { return false }
func geluMulFast(y, x, z []float32) bool                                            { return false }
func sumStreamsFast(b []byte) (uint64, bool)                                        { return 0, false }
