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
	form  swa.Form // of the rows, as their owner stores them
	mixed int64    // rows that the graph multiplies with, summed over query heads
	read  int64    // rows read, summed over KV heads
	index int64    // rows of an index over key blocks, read and multiplied with, per KV head
}

// reachOf counts what the queries of a layer see once the context is full. A static graph works on all the rows of a window,
// also when the context is shorter than it, yet there are never more than C rows to read (spec forward.md §8.3, §8.5).
func reachOf(l gemma4.Layer, p attention.Policy, context int) reach {
	r := reach{keep: p.Keep()}
	perKV := make([]int64, l.KVHeads)
	full := max(context, stored(r.keep, context))
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
	if s, ok := attention.As[attention.Selector](p); ok {
		r.index = int64((context + s.IndexRows() - 1) / s.IndexRows())
	}
	return r
}

// keyValueBytes are what one call of a layer reads of keys and values: rows in the form of their owner, the newest as they are where
// the form leaves them alone, and least and greatest keys of an index. A row that borrows its direction reads that as well.
func (r *reach) keyValueBytes(l gemma4.Layer) int64 {
	const kAndV, fp16 = 2, 2
	exact := float64(kAndV * fp16 * l.HeadDim)
	row := r.form.HeadBytes(l.HeadDim, fp16)
	if r.form.Like > 0 {
		row += exact
	}
	recent := min(r.read, int64(r.form.Recent*l.KVHeads))
	return int64(float64(r.read-recent)*row+float64(recent)*exact) + r.index*int64(l.KVHeads)*kAndV*fp16*int64(l.HeadDim)
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

// resolved are the policies of all layers, given and own, and what is wrong with them for the model.
func (l Layout) resolved(m *Model) ([]attention.Policy, error) {
	given, err := l.Policies(m)
	if err != nil {
		return nil, err
	}
	all := make([]attention.Policy, len(m.Layers))
	for i, layer := range m.Layers {
		all[i] = layer.Policy()
		if p, ok := given[i]; ok {
			all[i] = p
		}
		if err := attention.Fit(all[i], layer.Heads, layer.KVHeads); err != nil {
			return nil, err
		}
	}
	return all, gemma4.CheckPolicies(m.Layers, all)
}

// borrowed lists the layers whose rows take their directions from another layer, and that layer.
func borrowed(policies []attention.Policy, layers []gemma4.Layer) [][2]int {
	var all [][2]int
	for i, p := range policies {
		if f := attention.FormOf(p); f.Like > 0 && layers[i].OwnsKV() {
			all = append(all, [2]int{i, f.Like - 1})
		}
	}
	return all
}

// borrowsAcross finds a layer that borrows from another chunk: no port carries directions.
func borrowsAcross(pairs [][2]int, cuts []Cut) (pair [2]int, ok bool) {
	for _, pair := range pairs {
		for i := range cuts {
			if c := &cuts[i]; c.Lo <= pair[0] && pair[0] < c.Hi && pair[1] < c.Lo {
				return pair, true
			}
		}
	}
	return pair, false
}
