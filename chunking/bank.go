package chunking

import (
	"fmt"

	"anelab/attention"
	"anelab/gemma4"
	"anelab/swa"
)

// Bank is how the keys and values behind a layer are kept, and what ports with them are called. Layers of a kind whose rows are
// kept alike share ports: K_full_in has the rows of every position or, where no full layer keeps those, of windows. Rows that are
// kept in another way are a bank of their own, named by what it keeps (spec forward.md §7.4):
//
//	keeps                   ports of full layers
//	all                     K_full_in, causal_mask_full, kv14_k
//	first 4 and last 256    K_full_stream_4_256_in, causal_mask_full_stream_4_256, kv14_stream_4_256_k
//	last 256, beside all    K_full_window_256_in, …
//
// A bank with sinks has S+R rows: row i < S is position i, the others are a window whose newest row is the last. A position below S
// is looked at among the sinks only.
type Bank struct {
	Kind gemma4.Kind
	Keep swa.Retention // for all readers of the rows
	Name string        // what its ports are called beyond those of the traced chunks
}

// Windowed reports whether rows move up as new ones come; else row i is position i.
func (b Bank) Windowed() bool { return b.Keep != swa.All }

// Mask is the name of the causal mask over the bank's rows.
func (b Bank) Mask() string { return maskNames[b.Kind] + b.Name }

// caches are the names of its cache ports without what stands before and behind, keys first.
func (b Bank) caches() [2]string {
	names := cacheNames[b.Kind]
	return [2]string{names[0] + b.Name, names[1] + b.Name}
}

// handoff are the names of the ports that carry a donor's rows.
func (b Bank) handoff() [2]string {
	name := donorNames[b.Kind] + b.Name
	return [2]string{name + "_k", name + "_v"}
}

// banksOf gives every layer the bank behind its keys: what all readers of its KV source need together.
func banksOf(layers []gemma4.Layer, policies []attention.Policy, context int) []Bank {
	kept := make([]swa.Retention, len(layers))
	for i, y := range layers {
		if kept[i] = policies[i].Keep(); !y.OwnsKV() { // a donor comes before its readers
			kept[y.KVSource] = kept[y.KVSource].Union(kept[i])
		}
	}
	for i, r := range kept {
		if r.Sink > 0 && r.Sink+r.Last >= context { // a bank as long as the context: nothing ever leaves
			kept[i] = swa.All
		}
	}
	banks := make([]Bank, len(layers))
	plain := plainBanks(layers, kept)
	for i, y := range layers {
		b := Bank{Kind: y.Kind, Keep: kept[y.KVSource]}
		if r := b.Keep; r.Sink > 0 || b.Windowed() != plain[y.Kind] {
			b.Name = bankName(r)
		}
		banks[i] = b
	}
	return banks
}

// plainBanks says, by kind, whether the ports without further names hold windows: those of sliding layers do unless none keeps one,
// those of full layers only if none keeps every position.
func plainBanks(layers []gemma4.Layer, kept []swa.Retention) (windowed [2]bool) {
	var all, windows [2]bool
	for i, y := range layers {
		if y.OwnsKV() {
			all[y.Kind] = all[y.Kind] || kept[i] == swa.All
			windows[y.Kind] = windows[y.Kind] || kept[i] != swa.All && kept[i].Sink == 0
		}
	}
	return [2]bool{gemma4.Sliding: windows[gemma4.Sliding], gemma4.Full: windows[gemma4.Full] && !all[gemma4.Full]}
}

func bankName(r swa.Retention) string {
	switch {
	case r == swa.All:
		return "_all"
	case r.Sink > 0:
		return fmt.Sprintf("_stream_%d_%d", r.Sink, r.Last)
	}
	return fmt.Sprintf("_window_%d", r.Last)
}

// banks are those that layers of the kind read in the chunk, the plain one first. A chunk without such layers has the plain one
// too, as traced chunks do, if the model has it at all.
func (g *graphs) banks(c *Chunk, kind gemma4.Kind) []Bank {
	var plain, others []Bank
	seen, any := map[string]bool{}, false
	for _, y := range g.layers(c) {
		b := g.bank[y.Index]
		if b.Kind != kind {
			continue
		}
		any = true
		switch {
		case seen[b.Name]:
		case b.Name == "":
			plain = append(plain, b)
		default:
			others = append(others, b)
		}
		seen[b.Name] = true
	}
	if b, ok := g.plain(kind); ok && !any {
		plain = append(plain, b)
	}
	return append(plain, others...)
}

// plain is the kind's bank without a further name.
func (g *graphs) plain(kind gemma4.Kind) (b Bank, ok bool) {
	for _, b := range g.bank {
		if b.Kind == kind && b.Name == "" {
			return b, true
		}
	}
	return b, false
}
