package chunking

import (
	"anelab/attention"
	"anelab/gemma4"
	"anelab/swa"
)

// CheckPolicy reports what is wrong with the text form of an attention policy.
func CheckPolicy(text string) error {
	_, err := attention.Parse(text)
	return err
}

// Policies parses the attention policies that the layout gives to layers, by layer. Layers that keep the model's own are not
// in the map: [gemma4.Layer.Policy] knows those.
func (l Layout) Policies(m *Model) (map[int]attention.Policy, error) {
	all := map[int]attention.Policy{}
	for _, layer := range m.Layers {
		text := l.policyText(layer)
		if text == "" {
			continue
		}
		p, err := attention.Parse(text)
		if err != nil {
			return nil, err
		}
		all[layer.Index] = p
	}
	return all, nil
}

// policyText is what the layout says about a layer: its own policy, else that of all full layers, else nothing.
func (l Layout) policyText(layer gemma4.Layer) string {
	text := ""
	for _, a := range l.Attn {
		if a.Layer == layer.Index {
			return a.Policy
		}
		if a.Layer == allFull && layer.Kind == gemma4.Full {
			text = a.Policy
		}
	}
	return text
}

// reach is what a policy asks of one layer, counted in cache rows.
type reach struct {
	keep  swa.Retention
	mixed int64 // rows that the graph multiplies with, summed over query heads
	read  int64 // rows read, summed over KV heads
}

// reachOf counts what the queries of a layer see once the context is full. A static graph works on all the rows of a window,
// also when the context is shorter than it, yet there are never more than C rows to read (spec forward.md §8.3, §8.5).
func reachOf(l gemma4.Layer, p attention.Policy, context int) reach {
	r := reach{keep: p.Keep()}
	perKV := make([]int64, l.KVHeads)
	full := max(context, r.keep.Last)
	for g, heads := range p.Groups(l.Heads) {
		rows := count(p.Visible(nil, g, full-1))
		r.mixed += int64(heads.Hi-heads.Lo) * rows
		for h := heads.Lo; h < heads.Hi; h++ {
			kv := h * l.KVHeads / l.Heads
			perKV[kv] = max(perKV[kv], rows)
		}
	}
	for _, rows := range perKV {
		r.read += min(rows, int64(context))
	}
	return r
}

func count(spans []swa.Span) int64 {
	var n int64
	for _, s := range spans {
		n += int64(s.Hi - s.Lo)
	}
	return n
}

// stored is the number of rows that a port declares for a retention: a window is declared whole even where C is shorter.
func stored(r swa.Retention, context int) int {
	if r == swa.All {
		return context
	}
	return r.Rows(maxContext)
}
