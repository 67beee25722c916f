//go:build !amd64 || purego

package kernel

// cpuPaths is empty: generic Go is all there is.
func cpuPaths() []path { return nil }
