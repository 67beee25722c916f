package chunking

import "anelab/gemma4"

// Preset is a named layout. It is a formula over the model, not a list of layers, so it fits every model.
type Preset struct {
	Name        string // with its "@"
	Description string
	Source      string // where the cut comes from
}

// presets with the inner boundaries of each. Boundaries are named after the four-chunk layout they come from.
var presets = []struct {
	Preset
	inner func(b boundaries) []int
}{
	{Preset{"@4way", "four chunks: two that own KV, two that read it, the head in the last", "spec forward.md §4.2"},
		func(b boundaries) []int { return []int{b.c1, b.ownEnd, b.c3} }},
	{Preset{"@3way", "as @4way with chunks 2 and 3 in one", "spec forward.md §4.3, topology II"},
		func(b boundaries) []int { return []int{b.c1, b.c3} }},
	{Preset{"@topo1", "as @4way with chunks 1 and 2 in one", "spec forward.md §4.4, topology I"},
		func(b boundaries) []int { return []int{b.ownEnd, b.c3} }},
	{Preset{"@2way", "one chunk that owns KV, one that reads it", "spec forward.md §4.5, merged pair"},
		func(b boundaries) []int { return []int{b.ownEnd} }},
	{Preset{"@1way", "the whole model in one program", "spec forward.md §4.5, merged_full"},
		func(boundaries) []int { return nil }},
}

// boundaries of spec forward.md §4.0.
type boundaries struct {
	c1     int // middle of the layers that own KV
	ownEnd int // behind the last full layer that owns KV
	c3     int // middle of the layers that read it
}

// Presets lists the named layouts.
func Presets() []Preset {
	all := make([]Preset, len(presets))
	for i, p := range presets {
		all[i] = p.Preset
	}
	return all
}

func presetNames() []string {
	names := make([]string, len(presets))
	for i, p := range presets {
		names[i] = p.Name
	}
	return names
}

// Preset resolves a name such as "@3way". On a model whose layers share no KV there is nothing to cut by, so the chunks get
// equal numbers of layers.
func (m *Model) Preset(name string) (Layout, bool) {
	layers := len(m.Layers)
	for _, p := range presets {
		if p.Name != name {
			continue
		}
		donor := m.kinds[gemma4.Full].donor
		if donor < 0 {
			return even(layers, len(p.inner(boundaries{}))+1), true
		}
		b := boundaries{ownEnd: donor + 1}
		b.c1, b.c3 = (b.ownEnd+1)/2, b.ownEnd+(layers-b.ownEnd)/2
		return cutAt(layers, p.inner(b)), true
	}
	return Layout{}, false
}

func even(layers, chunks int) Layout {
	var inner []int
	for i := 1; i < chunks; i++ {
		inner = append(inner, i*layers/chunks)
	}
	return cutAt(layers, inner)
}

// cutAt makes a layout with the head in the last chunk. A boundary that would make an empty chunk is left out: models of
// three layers have no four chunks.
func cutAt(layers int, inner []int) Layout {
	var l Layout
	lo := 0
	for _, hi := range append(inner, layers) {
		if hi > lo {
			l.Cuts = append(l.Cuts, Cut{Lo: lo, Hi: hi, Head: hi == layers})
			lo = hi
		}
	}
	return l
}
