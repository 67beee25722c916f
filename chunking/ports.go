package chunking

import (
	"anelab/gemma4"
	"anelab/swa"
)

// Port names that depend on the kind of attention. kv13 and kv14 are E2B's donors; the names stay the same on every model.
var (
	maskNames  = [2]string{gemma4.Sliding: "causal_mask_sliding", gemma4.Full: "causal_mask_full"}
	ropeNames  = [2][2]string{gemma4.Sliding: {"cos_s", "sin_s"}, gemma4.Full: {"cos_f", "sin_f"}}
	cacheNames = [2][2]string{gemma4.Sliding: {"K_sliding", "V_sliding"}, gemma4.Full: {"K_full", "V_full"}}
	donorNames = [2]string{gemma4.Sliding: "kv13", gemma4.Full: "kv14"}
	bothKinds  = [2]gemma4.Kind{gemma4.Sliding, gemma4.Full}
)

// inputs in declared order (spec forward.md §4.0, §4.2; with several query tokens §4.10). A chunk that is only the head
// takes the hidden state and nothing else.
func (g *graphs) inputs(c *Chunk) []Port {
	ports := []Port{g.hidden("hidden_states")}
	if c.Lo == c.Hi {
		return ports
	}
	ports = append(ports, g.masks(c)...)
	if g.model.hasPLE() {
		name := "per_layer_combined"
		if c.Lo == 0 {
			name = "per_layer_raw"
		}
		ports = append(ports, g.perLayer(name))
	}
	for _, kind := range bothKinds {
		if k := g.model.kinds[kind]; k.layers > 0 {
			for _, name := range ropeNames[kind] {
				ports = append(ports, Port{Name: name, Role: RoleRope, Shape: []int{1, 1, g.tokens, k.headDim}})
			}
		}
	}
	ports = append(ports, g.caches(c, "_in")...)
	for _, kind := range bothKinds {
		if g.imports(c, kind) {
			ports = append(ports, g.handoff(kind)...)
		}
	}
	return ports
}

// outputs in declared order: the head's token first, then what the chunk remembers, then what later chunks need.
func (g *graphs) outputs(c *Chunk) []Port {
	var ports []Port
	switch {
	case c.Head && g.tokens > 1:
		ports = append(ports, Port{Name: "token_ids", Role: RoleToken, Type: Int32, Shape: []int{1, g.tokens}})
	case c.Head:
		ports = append(ports, Port{Name: "token_id", Role: RoleToken, Type: Int32, Shape: []int{1}},
			Port{Name: "token_logit", Role: RoleToken, Shape: []int{1}})
	}
	ports = append(ports, g.hidden("hidden_states_out"))
	if g.tokens > 1 {
		ports = append(ports, g.newRows(c)...)
	} else {
		ports = append(ports, g.caches(c, "_out")...)
	}
	if g.model.hasPLE() && c.Lo == 0 && 0 < c.Hi && c.Hi < len(g.model.Layers) {
		ports = append(ports, g.perLayer("per_layer_combined_out"))
	}
	for _, kind := range bothKinds {
		if g.exports(c, kind) {
			ports = append(ports, g.handoff(kind)...)
		}
	}
	return ports
}

func (g *graphs) hidden(name string) Port {
	return Port{Name: name, Role: RoleHidden, Shape: []int{1, g.tokens, g.model.Config.HiddenSize}}
}

func (g *graphs) perLayer(name string) Port {
	return Port{Name: name, Role: RolePLE, Shape: []int{1, g.tokens, g.model.pleWidth()}}
}

// masks are one additive mask per bank and the one-hot that says which row of a full cache is written. Decode chunks without
// KV of their own declare the one-hot too and never use it; verify chunks declare theirs only where it is used, as the traced
// ones do. Where every cache is a window nothing is written through it, and no chunk declares it (spec forward.md §4.8, WFA).
func (g *graphs) masks(c *Chunk) []Port {
	var ports []Port
	for _, kind := range [2]gemma4.Kind{gemma4.Full, gemma4.Sliding} {
		for _, b := range g.banks(c, kind) {
			ports = append(ports, Port{Name: b.Mask(), Role: RoleMask, Shape: []int{1, 1, g.tokens, g.maskRows(c, b)}})
		}
	}
	switch {
	case !g.masked, g.tokens > 1 && !g.owns(c):
		return ports
	case g.tokens > 1:
		return append(ports, Port{Name: "update_indicator", Role: RoleUpdate, Shape: []int{1, 1, g.context, g.tokens}})
	}
	return append(ports, Port{Name: "update_mask", Role: RoleUpdate, Shape: []int{1, 1, g.context, 1}})
}

// maskRows is the most rows that a layer of the bank has behind it; a chunk without one still declares the model's own width.
func (g *graphs) maskRows(c *Chunk, b Bank) int {
	rows := 0
	for _, l := range g.layers(c) {
		if at := g.bank[l.Index]; at.Kind == b.Kind && at.Name == b.Name {
			rows = max(rows, g.rows[l.Index])
		}
	}
	if rows > 0 {
		return rows
	}
	if b.Kind == gemma4.Full {
		return g.context
	}
	return g.model.kinds[b.Kind].window
}

// caches are the chunk's own keys and values, every row as wide as the widest head. A chunk with sliding KV alone declares
// one unused full slot (count max(n, 1), spec forward.md §4.2); without any KV of its own it declares nothing.
func (g *graphs) caches(c *Chunk, suffix string) []Port {
	var ports []Port
	for _, kind := range bothKinds {
		for _, b := range g.banks(c, kind) {
			slots := g.owned(c, b)
			unused := kind == gemma4.Full && b.Name == "" && len(ports) > 0 && !g.ownsKind(c, kind)
			if len(slots) > 0 || unused {
				ports = append(ports, g.cache(b, suffix, slots)...)
			}
		}
	}
	return ports
}

// cache is the pair of cache tensors of one bank: [n, K, rows, width].
func (g *graphs) cache(b Bank, suffix string, slots []int) []Port {
	rows := 0
	for _, l := range slots {
		rows = max(rows, g.rows[l])
	}
	if len(slots) == 0 {
		rows = g.context
	}
	shape := []int{max(len(slots), 1), g.model.kinds[b.Kind].kvHeads, rows, g.model.cacheWidth}
	return pair(b.caches(), "", suffix, Port{Role: RoleCache, Shape: shape, Layers: slots, Stored: g.formBytes(slots, rows)})
}

// formBytes is half of what keys and values of the slots take together where one of them is stored in a form; else 0.
func (g *graphs) formBytes(slots []int, rows int) int64 {
	const kAndV, fp16 = 2, 2
	var n float64
	formed := false
	for _, l := range slots {
		f, layer := g.reach[l].form, g.model.Layers[l]
		per := float64(kAndV * fp16 * g.model.cacheWidth)
		if f != (swa.Form{}) {
			formed, per = true, f.HeadBytes(layer.HeadDim, fp16)
		}
		n += float64(rows*layer.KVHeads) * per
	}
	if !formed {
		return 0
	}
	return int64(n / kAndV)
}

// newRows are the rows that a verify graph computed, for the caller to commit: [n, K, T, d], natural width.
func (g *graphs) newRows(c *Chunk) []Port {
	var ports []Port
	for _, kind := range bothKinds {
		k := g.model.kinds[kind]
		for _, b := range g.banks(c, kind) {
			if slots := g.owned(c, b); len(slots) > 0 {
				shape := []int{len(slots), k.kvHeads, g.tokens, k.headDim}
				ports = append(ports, pair(b.caches(), "new_", "", Port{Role: RoleCache, Shape: shape, Layers: slots})...)
			}
		}
	}
	return ports
}

// handoff is a donor's keys and values as they travel: [1, K, rows, d], natural width.
func (g *graphs) handoff(kind gemma4.Kind) []Port {
	k := g.model.kinds[kind]
	shape := []int{1, k.kvHeads, g.rows[k.donor], k.headDim}
	return pair(g.bank[k.donor].handoff(), "", "", Port{Role: RoleHandoff, Shape: shape, Layers: []int{k.donor}})
}

// pair makes the K and the V port of a template.
func pair(names [2]string, prefix, suffix string, p Port) []Port {
	k, v := p, p
	k.Name, v.Name = prefix+names[0]+suffix, prefix+names[1]+suffix
	return []Port{k, v}
}
