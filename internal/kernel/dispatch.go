package kernel

import (
	"fmt"
	"os"
)

// path is one set of inner loops. A nil entry falls back to generic Go, which is the specification.
type path struct {
	name            string
	rows32          func(y, w, x []float32, n, t int)
	rows64          func(y []float64, w, x []float32, n, t int)
	strided32       func(y, w, x *float32, wStride, xStride, n int)
	strided64       func(y *float64, w, x *float32, wStride, xStride, n int)
	axpy32          func(y, x *float32, p float32, n int)
	axpy64          func(y *float64, x *float32, p float32, n int)
	decodeBF16      func(dst []float32, src []byte)
	decodeF16       func(dst []float32, src []byte)
	decodeBF16AsF16 func(dst []float32, src []byte)
}

// EnvPath names the environment variable that forces a path: "generic", or one of the names that Paths lists.
const EnvPath = "ANELAB_KERNEL"

// active is the path in use, chosen once at start: the best the CPU has, or what EnvPath asks for.
var active = choose(os.Getenv(EnvPath))

// choose returns the named path, or the best one for "". A name this CPU cannot run is a mistake that must not go unnoticed
// in a benchmark or a test.
func choose(name string) path {
	paths := append(cpuPaths(), path{name: "generic"})
	if name == "" {
		return paths[0]
	}
	for _, p := range paths {
		if p.name == name {
			return p
		}
	}
	panic(fmt.Sprintf("kernel: %s=%s: this build on this CPU has %v", EnvPath, name, Paths()))
}

// Paths lists the paths this build can take on this CPU, the fastest first.
func Paths() []string {
	var names []string
	for _, p := range cpuPaths() {
		names = append(names, p.name)
	}
	return append(names, "generic")
}

// Path is the name of the path in use.
func Path() string { return active.name }
