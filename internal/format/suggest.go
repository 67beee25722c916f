package format

// Closest returns the candidate nearest to name by edit distance, or "" when none is near enough to be a likely typo
// (at most a third of the letters wrong, at least one).
func Closest(name string, candidates []string) string {
	best, limit := "", max(1, len(name)/3)+1
	for _, c := range candidates {
		if d := editDistance(name, c); d < limit {
			best, limit = c, d
		}
	}
	return best
}

// DidYouMean is the fix line for an unknown name: the closest candidate if there is one, else the whole list.
func DidYouMean(name string, candidates []string) string {
	if c := Closest(name, candidates); c != "" {
		return "did you mean " + quote(c) + "?"
	}
	s := "known: "
	for i, c := range candidates {
		if i > 0 {
			s += ", "
		}
		s += c
	}
	return s
}

func quote(s string) string { return "\"" + s + "\"" }

// editDistance is the optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours.
func editDistance(a, b string) int {
	prev2, prev := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur := make([]int, len(b)+1)
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev = prev, cur
	}
	return prev[len(b)]
}
