package chunking

import (
	"iter"
	"math"
)

// Count is the number of layouts that [Enumerate] yields: C(L−1, n−1). It stops at the largest int64.
func Count(m *Model, n int) int64 {
	gaps, chosen := len(m.Layers)-1, n-1
	if chosen < 0 || chosen > gaps {
		return 0
	}
	count := int64(1)
	for i := range min(chosen, gaps-chosen) {
		if count > math.MaxInt64/int64(gaps-i) {
			return math.MaxInt64
		}
		count = count * int64(gaps-i) / int64(i+1)
	}
	return count
}

// Enumerate yields every way to cut the model into n chunks, in lexicographic order of the cuts, the head in the last chunk.
// A layout is valid until the next one is asked for: they share one slice.
func Enumerate(m *Model, n int) iter.Seq[Layout] {
	return func(yield func(Layout) bool) {
		layers := len(m.Layers)
		if n < 1 || n > layers {
			return
		}
		cuts := make([]Cut, n)
		for i := range cuts {
			cuts[i] = Cut{Lo: i, Hi: i + 1}
		}
		cuts[n-1].Hi, cuts[n-1].Head = layers, true
		for yield(Layout{Cuts: cuts}) && advance(cuts) {
		}
	}
}

// advance moves to the next set of cuts: the last boundary that has room goes up by one, and all behind it follow closely.
func advance(cuts []Cut) bool {
	n, layers := len(cuts), cuts[len(cuts)-1].Hi
	for i := n - 1; i > 0; i-- {
		if cuts[i].Lo+n-i >= layers {
			continue
		}
		cuts[i].Lo++
		for j := i + 1; j < n; j++ {
			cuts[j].Lo = cuts[j-1].Lo + 1
		}
		for j := i; j < n; j++ {
			cuts[j-1].Hi = cuts[j].Lo
		}
		return true
	}
	return false
}
