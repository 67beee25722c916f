//go:build (!amd64 && !arm64) || purego

package kernel

// cpuPaths is empty: generic Go is all there is.
func cpuPaths() []path { return nil }

func decodeFast(f format, dst []float32, src []byte) bool  { return false }
func encodeF16Fast(dst []uint16, src []float32) bool       { return false }
func widenFast(f format, dst []float32, src []uint16) bool { return false }

func gemv4Fast(y []float32, p pair, i int) bool { return false }

// pause would let the other threads of a core go ahead while a loop waits.
func pause() {}
