//go:build !linux && !darwin

package device

// threadID is not to be had here: all threads then seem to share their pools, so tests with several of them are skipped.
func threadID() int { return 0 }

const threadsKnown = false
