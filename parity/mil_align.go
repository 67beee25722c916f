package parity

import (
	"strings"

	"anelab/coreml/mil"
)

// align matches the ops of two programs that do the same and yield the same types, in order: a longest common subsequence. Where the
// programs are too different for that to be found in reasonable memory, only their beginnings and ends are matched.
func align(a, b []*mil.Op) [][2]int {
	sa, sb := signatures(a), signatures(b)
	var pairs [][2]int
	lo := 0
	for lo < len(sa) && lo < len(sb) && sa[lo] == sb[lo] {
		pairs = append(pairs, [2]int{lo, lo})
		lo++
	}
	hiA, hiB := len(sa), len(sb)
	for hiA > lo && hiB > lo && sa[hiA-1] == sb[hiB-1] {
		hiA, hiB = hiA-1, hiB-1
	}
	for _, p := range longestCommon(sa[lo:hiA], sb[lo:hiB]) {
		pairs = append(pairs, [2]int{lo + p[0], lo + p[1]})
	}
	for hiA < len(sa) {
		pairs = append(pairs, [2]int{hiA, hiB})
		hiA, hiB = hiA+1, hiB+1
	}
	return pairs
}

// signatures says of each op what it does.
func signatures(ops []*mil.Op) []string {
	list := make([]string, len(ops))
	for i, op := range ops {
		var b strings.Builder
		b.WriteString(op.Type)
		for _, out := range op.Outputs {
			b.WriteString(" " + out.Type.String())
		}
		list[i] = b.String()
	}
	return list
}

// mostCells bounds the table of longestCommon: two programs of 5000 ops that differ throughout.
const mostCells = 25 << 20

// longestCommon is a longest common subsequence as pairs of indices.
func longestCommon(a, b []string) [][2]int {
	if len(a) == 0 || len(b) == 0 || len(a)*len(b) > mostCells {
		return nil
	}
	width := len(b) + 1
	longest := make([]uint16, (len(a)+1)*width) // of the rests from i and j on
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			longest[i*width+j] = max(longest[(i+1)*width+j], longest[i*width+j+1])
			if a[i] == b[j] {
				longest[i*width+j] = longest[(i+1)*width+j+1] + 1
			}
		}
	}
	var pairs [][2]int
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			pairs = append(pairs, [2]int{i, j})
			i, j = i+1, j+1
		case longest[(i+1)*width+j] >= longest[i*width+j+1]:
			i++
		default:
			j++
		}
	}
	return pairs
}
