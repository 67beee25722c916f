package census

import (
	"cmp"
	"slices"

	"anelab/coreml/mil"
)

// Share is what one encoding takes of the weights.
type Share struct {
	Encoding string // as [Weight.Encoding]
	Weights  int    // names; constants that share bytes count each
	Elements int64  // that readers see; those that share bytes once
	Bytes    int64  // as stored, every blob once
}

// Tally sums weights by encoding, the largest first. Weights of several functions may be given together: what they share is
// counted for the first.
func Tally(weights []Weight) []Share {
	sums := map[string]*Share{}
	seen := map[any]bool{}
	for i := range weights {
		w := &weights[i]
		s := sums[w.Encoding()]
		if s == nil {
			s = &Share{Encoding: w.Encoding()}
			sums[s.Encoding] = s
		}
		s.Weights++
		if !seen[Identity(w.Parts[0])] {
			s.Elements += w.Elements()
		}
		for _, p := range w.Parts {
			if id := Identity(p); !seen[id] {
				seen[id] = true
				n, _ := p.Type.ByteSize()
				s.Bytes += n
			}
		}
	}
	var all []Share
	for _, s := range sums {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Encoding, b.Encoding))
	})
	return all
}

// place is where a blob lies.
type place struct {
	file   string
	offset uint64
}

// Identity is equal for values that are the same bytes of a weights file. It can be a key.
func Identity(v *mil.Value) any {
	if b := v.Blob(); b != nil {
		return place{b.File, b.Offset}
	}
	return v
}

// Count is how often an op occurs.
type Count struct {
	Type string
	Ops  int
}

// Ops counts the ops of a function by type, those of nested blocks included, the most frequent first. Constants are no ops.
func Ops(f *mil.Function) []Count {
	sums := map[string]int{}
	for op := range f.Body.All() {
		if !isConstant(op) {
			sums[op.Type]++
		}
	}
	var all []Count
	for t, n := range sums {
		all = append(all, Count{t, n})
	}
	slices.SortFunc(all, func(a, b Count) int { return cmp.Or(cmp.Compare(b.Ops, a.Ops), cmp.Compare(a.Type, b.Type)) })
	return all
}
