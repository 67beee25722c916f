package chunking

import (
	"errors"
	"fmt"
	"slices"

	"anelab/attention"
	"anelab/gemma4"
	"anelab/internal/format"
)

// Rule names what a layout can break.
type Rule string

// Rules about cuts, then about settings.
const (
	RuleEmpty   Rule = "empty chunk"
	RuleRange   Rule = "layer outside the model"
	RuleOverlap Rule = "layer in two chunks"
	RuleGap     Rule = "layer in no chunk"
	RuleDonor   Rule = "donor after its reader"
	RuleOrder   Rule = "chunks out of order"
	RuleHead    Rule = "head"
	RuleContext Rule = "context"
	RuleTokens  Rule = "query tokens"
	RuleKVMode  Rule = "kv mode"
	RuleAttn    Rule = "attention policy"
	maxReports       = 20 // violations of one layout; more say nothing new
	noChunk          = -1
)

// Violation is one rule of the model that a layout breaks.
type Violation struct {
	Rule  Rule
	Chunk int    // index into Cuts; −1 when no chunk is at fault
	Layer int    // −1 when no layer is at fault
	Text  string // one sentence; chunks are counted from 1 in it
	Fix   string // empty when there is no obvious one
}

func (v Violation) where() string {
	if v.Chunk < 0 {
		return string(v.Rule)
	}
	return fmt.Sprintf("chunk %d", v.Chunk+1)
}

// Violations lists what is wrong with the layout for the model, the most telling first; none means that it can be planned.
func (l Layout) Violations(m *Model) []Violation {
	if len(l.Cuts) == 0 {
		return []Violation{{RuleEmpty, noChunk, -1, "there are no chunks", "write L0-7 | … +head, or a preset: @3way"}}
	}
	v := append(l.rangeViolations(m), l.coverViolations(m)...)
	if len(v) == 0 {
		v = l.orderViolations(m)
	}
	v = append(v, l.headViolations()...)
	v = append(v, settingViolations(l, m)...)
	if len(v) == 0 {
		v = l.borrowViolations(m)
	}
	return v[:min(len(v), maxReports)]
}

// rangeViolations are faults of single cuts.
func (l Layout) rangeViolations(m *Model) []Violation {
	var all []Violation
	for i, c := range l.Cuts {
		switch last := len(m.Layers) - 1; {
		case c.Lo > c.Hi || c.Lo < 0:
			all = append(all, Violation{RuleRange, i, c.Lo, fmt.Sprintf("layers %d to %d run backwards", c.Lo, c.Hi-1), "write the lower layer first"})
		case c.Lo == c.Hi && !c.Head:
			all = append(all, Violation{RuleEmpty, i, -1, fmt.Sprintf("chunk %d has no layers", i+1), ""})
		case c.Lo == c.Hi && c.Lo != len(m.Layers):
			all = append(all, Violation{RuleRange, i, c.Lo, fmt.Sprintf("chunk %d is only the head, yet begins at layer %d", i+1, c.Lo),
				fmt.Sprintf("its place is behind the last layer: %d", len(m.Layers))})
		case c.Hi > len(m.Layers):
			all = append(all, Violation{RuleRange, i, max(c.Lo, last+1), fmt.Sprintf("layer %d does not exist", max(c.Lo, last+1)),
				fmt.Sprintf("the model's last layer is %d", last)})
		}
	}
	return all
}

// coverViolations are layers in two chunks or in none.
func (l Layout) coverViolations(m *Model) []Violation {
	var all []Violation
	chunkOf := slices.Repeat([]int{noChunk}, len(m.Layers))
	for i, c := range l.Cuts {
		reported := false
		for layer := max(c.Lo, 0); layer < min(c.Hi, len(m.Layers)); layer++ {
			if chunkOf[layer] != noChunk && !reported {
				all = append(all, Violation{RuleOverlap, i, layer, fmt.Sprintf("layer %d is in two chunks", layer),
					fmt.Sprintf("take it out of chunk %d or %d", chunkOf[layer]+1, i+1)})
				reported = true
			}
			chunkOf[layer] = i
		}
	}
	for layer := 0; layer < len(chunkOf); layer++ {
		if chunkOf[layer] != noChunk {
			continue
		}
		first := layer
		for layer+1 < len(chunkOf) && chunkOf[layer+1] == noChunk {
			layer++
		}
		all = append(all, l.gap(first, layer))
	}
	return all
}

// gap points at the chunk after the missing layers, or at the last one when the end is missing.
func (l Layout) gap(first, last int) Violation {
	at := len(l.Cuts) - 1
	for i, c := range l.Cuts {
		if c.Lo > last && c.Hi > c.Lo {
			at = i
			break
		}
	}
	text := fmt.Sprintf("layer %d is in no chunk", first)
	if first < last {
		text = fmt.Sprintf("layers %d to %d are in no chunk", first, last)
	}
	return Violation{RuleGap, at, first, text, "every layer belongs to exactly one chunk"}
}

// orderViolations look at a layout that covers every layer once. A reader before its donor is named first: it stays wrong
// however the hidden states travel.
func (l Layout) orderViolations(m *Model) []Violation {
	chunkOf := make([]int, len(m.Layers))
	for i, c := range l.Cuts {
		for layer := c.Lo; layer < c.Hi; layer++ {
			chunkOf[layer] = i
		}
	}
	var all []Violation
	told := map[[2]int]bool{}
	for _, layer := range m.Layers {
		i := chunkOf[layer.Index]
		if key := [2]int{i, layer.KVSource}; chunkOf[layer.KVSource] > i && !told[key] {
			told[key] = true
			all = append(all, donorViolation(i, chunkOf[layer.KVSource], layer))
		}
	}
	next := 0
	for i, c := range l.Cuts {
		if c.Hi == c.Lo { // only the head: headViolations judges its place
			continue
		}
		if c.Lo != next {
			all = append(all, Violation{RuleOrder, i, c.Lo, fmt.Sprintf("chunk %d begins at layer %d, but layer %d comes next", i+1, c.Lo, next),
				"list the chunks in layer order"})
			break
		}
		next = c.Hi
	}
	return all
}

func donorViolation(chunk, donorChunk int, l gemma4.Layer) Violation {
	return Violation{RuleDonor, chunk, l.Index,
		fmt.Sprintf("chunk %d reads keys and values of layer %d, which comes later, in chunk %d", chunk+1, l.KVSource, donorChunk+1),
		fmt.Sprintf("layer %d shares the KV of layer %d; put the chunk that owns it first", l.Index, l.KVSource)}
}

// headViolations: exactly one head, in the last chunk.
func (l Layout) headViolations() []Violation {
	last := len(l.Cuts) - 1
	var all []Violation
	for i, c := range l.Cuts {
		if c.Head && i < last {
			all = append(all, Violation{RuleHead, i, -1, fmt.Sprintf("the head is in chunk %d of %d", i+1, last+1), "the head belongs to the last chunk"})
		}
	}
	if len(all) == 0 && !l.Cuts[last].Head {
		all = append(all, Violation{RuleHead, last, -1, "no chunk has the head", "add +head to the last chunk"})
	}
	return all
}

// settingViolations are faults of the values that hold for the whole layout.
func settingViolations(l Layout, m *Model) []Violation {
	var all []Violation
	context := orDefault(l.Context, DefaultContext)
	if context < 1 || context > maxContext {
		all = append(all, Violation{RuleContext, noChunk, -1, fmt.Sprintf("context %d", l.Context), fmt.Sprintf("choose 1 to %d", maxContext)})
	}
	most := min(maxQueryTokens, max(context, 1))
	if t := orDefault(l.QueryTokens, DefaultQueryTokens); t < 1 || t > most {
		all = append(all, Violation{RuleTokens, noChunk, -1, fmt.Sprintf("%d query tokens", l.QueryTokens), fmt.Sprintf("choose 1 to %d", most)})
	}
	if l.KVMode != ExplicitIO {
		all = append(all, Violation{RuleKVMode, noChunk, -1, fmt.Sprintf("KV mode %d", l.KVMode), "only explicit I/O is planned"})
	}
	return append(all, attnViolations(l, m)...)
}

// attnViolations are faults of attention policies: their text, their place, and what the model cannot do.
func attnViolations(l Layout, m *Model) []Violation {
	var all []Violation
	seen := map[int]bool{}
	for _, a := range l.Attn {
		switch err := checkPolicy(a, m); {
		case a.Layer < allFull || a.Layer >= len(m.Layers):
			all = append(all, Violation{RuleAttn, noChunk, a.Layer, fmt.Sprintf("layer %d does not exist", a.Layer), fmt.Sprintf("the model's last layer is %d", len(m.Layers)-1)})
		case seen[a.Layer]:
			all = append(all, Violation{RuleAttn, noChunk, a.Layer, "two attention policies for " + layerName(a.Layer), "keep one"})
		case err != nil:
			all = append(all, policyViolation(a.Layer, err))
		}
		seen[a.Layer] = true
	}
	if len(all) > 0 || len(l.Attn) == 0 {
		return all
	}
	if _, err := l.resolved(m); err != nil {
		return []Violation{policyViolation(l.Attn[0].Layer, err)}
	}
	return nil
}

// checkPolicy reports why a policy cannot be had by the layers it is for.
func checkPolicy(a LayerAttn, m *Model) error {
	p, err := attention.Parse(a.Policy)
	if err != nil {
		return err
	}
	for _, layer := range m.Layers {
		if layer.Index == a.Layer || a.Layer == allFull && layer.Kind == gemma4.Full {
			if err := attention.Fit(p, layer.Heads, layer.KVHeads); err != nil {
				return err
			}
		}
	}
	return nil
}

// policyViolation keeps the fix of an error apart from the rest of it.
func policyViolation(layer int, err error) Violation {
	var f *format.Error
	if !errors.As(err, &f) {
		return Violation{RuleAttn, noChunk, layer, err.Error(), ""}
	}
	rest := *f
	rest.Field, rest.Fix = "", ""
	return Violation{RuleAttn, noChunk, layer, rest.Error(), f.Fix}
}

// borrowViolations look at layers that take the directions of rows of another chunk.
func (l Layout) borrowViolations(m *Model) []Violation {
	policies, err := l.resolved(m)
	if err != nil {
		return nil // attnViolations says why
	}
	if pair, ok := borrowsAcross(borrowed(policies, m.Layers), l.Cuts); ok {
		return []Violation{acrossViolation(pair)}
	}
	return nil
}

func acrossViolation(pair [2]int) Violation {
	return Violation{RuleAttn, noChunk, pair[0], fmt.Sprintf("layer %d takes the directions of its rows from layer %d, which is in an earlier chunk", pair[0], pair[1]),
		"put both into one chunk: no port carries directions"}
}

func layerName(layer int) string {
	if layer < 0 {
		return "the full layers"
	}
	return fmt.Sprintf("layer %d", layer)
}
