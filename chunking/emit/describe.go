package emit

import (
	"fmt"
	"slices"
	"strings"

	"anelab/chunking"
	"anelab/coreml/mil"
	"anelab/internal/half"
)

// f16Of is a constant as an fp16 graph holds it.
func f16Of(x float64) float64 { return float64(half.RoundF16(float32(x))) }

// face describes the ports and states of a function.
func (c *call) face() mil.Interface {
	var face mil.Interface
	for _, p := range c.sig.Inputs {
		face.Inputs = append(face.Inputs, feature(p))
	}
	for _, p := range c.sig.Outputs {
		face.Outputs = append(face.Outputs, feature(p))
	}
	for _, s := range c.states {
		face.States = append(face.States, mil.Feature{Name: stateNames[s.kind], Kind: mil.StatePort, Array: &mil.ArrayFeature{DType: mil.Float16, Shape: s.shape}})
	}
	return face
}

func feature(p chunking.Port) mil.Feature {
	t := portType(p)
	return mil.Feature{Name: p.Name, Kind: mil.ArrayPort, Array: &mil.ArrayFeature{DType: t.DType, Shape: t.Shape}}
}

// metadata says what a package was made from, so that a reader need not guess.
func (p *part) metadata() mil.Metadata {
	c := p.plan.Chunks[p.index]
	m := mil.Metadata{Doc: fmt.Sprintf("Gemma 4, chunk %d of %d: %s", p.index+1, len(p.plan.Chunks), c), UserDefined: []mil.UserDefined{
		{Key: "anelab.chunk", Value: c.String()},
		{Key: "anelab.context", Value: fmt.Sprint(p.plan.Context)},
		{Key: "anelab.layout", Value: p.plan.Layout.String()},
		{Key: "anelab.weights", Value: c.Weights.String()},
	}}
	slices.SortFunc(m.UserDefined, func(a, b mil.UserDefined) int { return strings.Compare(a.Key, b.Key) })
	return m
}

// shipped are the file names that CoreML-LLM's runtime knows, by preset (spec forward.md §4.2–4.5).
var shipped = []struct {
	preset string
	names  []string
}{
	{"@4way", []string{"chunk1", "chunk2", "chunk3", "chunk4"}},
	{"@3way", []string{"chunk1", "chunk2_3way", "chunk3_3way"}},
	{"@topo1", []string{"chunk1_topoI", "chunk2_topoI", "chunk3_topoI"}},
	{"@2way", []string{"merged_chunk1", "merged_chunk2"}},
	{"@1way", []string{"merged_full"}},
}

// fileNames are those of the runtime where the cuts are a preset's; chunks with states are counted (§4.11).
func fileNames(plan *chunking.Plan, caches Caches) []string {
	if caches == StateCaches && len(plan.Chunks) == 1 {
		return []string{"model"}
	}
	pattern := "chunk%d"
	if caches == StateCaches {
		pattern = "chunk_%d"
	} else {
		for _, s := range shipped {
			if l, ok := plan.Model.Preset(s.preset); ok && len(l.Cuts) == len(s.names) && sameCuts(l.Cuts, plan.Chunks) {
				return s.names
			}
		}
	}
	var names []string
	for i := range plan.Chunks {
		names = append(names, fmt.Sprintf(pattern, i+1))
	}
	return names
}

func sameCuts(cuts []chunking.Cut, chunks []*chunking.Chunk) bool {
	return slices.EqualFunc(cuts, chunks, func(a chunking.Cut, b *chunking.Chunk) bool { return a.Lo == b.Lo && a.Hi == b.Hi && a.Head == b.Head })
}
