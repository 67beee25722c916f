//go:build !linux

package device

// threadID is not to be had here: all threads then seem to share their pools, so tests with several of them run on Linux only.
func threadID() int { return 0 }
