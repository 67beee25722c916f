package kernel

import (
	"fmt"
	"os"
	"slices"
)

//go:generate go run ./_asm -dir .

// path is one set of inner loops.
type path uint8

// Generic Go is the specification; the others are faster and, where pinned, equal to it bit for bit.
const (
	generic path = iota
	neon
	avx2
	avxvnni // avx2, with the dot products of words that some CPUs have beside it
	avx512  // with those dot products
)

func (p path) String() string {
	return [...]string{"generic", "neon", "avx2", "avxvnni", "avx512"}[p]
}

// dense is the path of everything but palettes.
func (p path) dense() path {
	if p == avxvnni {
		return avx2
	}
	return p
}

// EnvPath names the environment variable that forces a path: "generic", or one of the names that Paths lists.
const EnvPath = "ANELAB_KERNEL"

// active is the path in use, chosen once at start: the best the CPU has, or what EnvPath asks for.
var active = choose(os.Getenv(EnvPath))

// choose returns the named path, or the best one for "". A name this CPU cannot run is a mistake that must not go unnoticed
// in a benchmark or a test.
func choose(name string) path {
	paths := append(cpuPaths(), generic)
	if name == "" {
		return paths[0]
	}
	i := slices.IndexFunc(paths, func(p path) bool { return p.String() == name })
	if i < 0 {
		panic(fmt.Sprintf("kernel: %s=%s: this build on this CPU has %v", EnvPath, name, Paths()))
	}
	return paths[i]
}

// Paths lists the paths this build can take on this CPU, the fastest first.
func Paths() []string {
	var names []string
	for _, p := range append(cpuPaths(), generic) {
		names = append(names, p.String())
	}
	return names
}

// Path is the name of the path in use.
func Path() string { return active.String() }
