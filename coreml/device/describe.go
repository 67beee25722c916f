package device

import (
	"strings"

	"anelab/coreml/census"
)

// What a report says of the models is read off their programs and ports.

func isMask(name string) bool       { return strings.Contains(name, "mask") }
func isUpdateMask(name string) bool { return strings.Contains(name, "update_mask") }

// describe fills in the context, and the form that most weights have.
func (r *Report) describe(benches []*bench) {
	forms := map[[2]int]int64{} // bits and group size → elements
	for _, b := range benches {
		inputs, _, _, err := b.model.Ports(b.function)
		if err != nil {
			continue
		}
		for _, p := range inputs {
			if isMask(p.Name) && !isUpdateMask(p.Name) && len(p.Shape) > 0 {
				r.Context = max(r.Context, p.Shape[len(p.Shape)-1])
			}
		}
		for _, w := range weights(b.model) {
			forms[[2]int{w.Bits, groupSize(w)}] += w.Elements()
		}
	}
	var most int64
	for form, elements := range forms {
		if elements > most {
			most, r.WeightBits, r.GroupSize = elements, form[0], form[1]
		}
	}
}

// weights are those of all functions; nil if only a compiled model was opened.
func weights(m *Model) []census.Weight {
	if m.Package == nil {
		return nil
	}
	var list []census.Weight
	for _, f := range m.Package.Program.Functions {
		list = append(list, census.Weights(f)...)
	}
	return list
}

// groupSize is how many rows share a palette or scale; 0 for other weights, and where all rows share one.
func groupSize(w census.Weight) int {
	if len(w.Blocks) == 0 || len(w.Type.Shape) == 0 || w.Blocks[0] <= 1 {
		return 0
	}
	return int(w.Type.Shape[0] / w.Blocks[0])
}

// weightBytes is what the program has in its weights; functions may share them.
func weightBytes(m *Model) int64 {
	var sum int64
	for _, share := range census.Tally(weights(m)) {
		sum += share.Bytes
	}
	return sum
}
