package emit

import (
	"anelab/chunking"
	"anelab/chunking/run"
	"anelab/coreml/mil"
	"anelab/gemma4"
)

// keeper is how a function remembers keys and values.
type keeper interface {
	// store takes the new rows k and v [1, K, T, d] of owner y and returns all rows that are attended to, [1, K, rows, d].
	store(w *writer, y gemma4.Layer, k, v string) (keys, values string)
	// outputs makes what has been stored outputs of the function.
	outputs(w *writer, ports []chunking.Port)
}

// keeperOf chooses by what a function is for.
func keeperOf(f *call) keeper {
	switch {
	case f.caches == StateCaches:
		return &stateCaches{fresh: map[int][2]string{}}
	case f.Kind == run.Prefill:
		return &batchRows{}
	case f.Kind == run.Verify:
		return &trialRows{fresh: map[int][2]string{}}
	}
	return &portCaches{updated: map[int][2]string{}}
}

// slotOf is where layer l has its rows in a port.
func slotOf(p chunking.Port, l int) (slot int, ok bool) {
	for i, layer := range p.Layers {
		if layer == l {
			return i, true
		}
	}
	return 0, false
}

// cacheOf is the part of the input caches that holds layer l: [1, K, S, width] each.
func (w *writer) cacheOf(l int) (k, v string) {
	for i, p := range w.fn.sig.Inputs {
		if p.Role != chunking.RoleCache {
			continue
		}
		if s, ok := slotOf(p, l); ok {
			at := int64(s)
			return w.slice("k_cache", p.Name, 0, at, at+1), w.slice("v_cache", w.fn.sig.Inputs[i+1].Name, 0, at, at+1)
		}
	}
	panic("emit: an owner without a cache")
}

// widened pads rows of d values with zeros to the width of a cache.
func (w *writer) widened(name, x string, width int64) string {
	d := w.shape(x)[3]
	if d == width {
		return x
	}
	return w.op("pad", name, in("x", x), w.ints("pad", 0, 0, 0, 0, 0, 0, 0, width-d), w.set("mode", mil.Scalar("constant")), w.set("constant_val", f16(0)))
}

// portCaches are those of a decode call: caches come in and go out whole (spec forward.md §4.1).
type portCaches struct {
	updated map[int][2]string // by layer, [1, K, S, width]
}

func (c *portCaches) store(w *writer, y gemma4.Layer, k, v string) (keys, values string) {
	oldK, oldV := w.cacheOf(y.Index)
	width := w.shape(oldK)[3]
	newK, newV := c.update(w, y, "k_", oldK, w.widened("k_wide", k, width)), c.update(w, y, "v_", oldV, w.widened("v_wide", v, width))
	c.updated[y.Index] = [2]string{newK, newV}
	return w.slice("keys", newK, 3, 0, int64(y.HeadDim)), w.slice("values", newV, 3, 0, int64(y.HeadDim))
}

// update shifts a row into a window, or writes it where the one-hot mask says, or both where sinks stand in front of the window.
func (c *portCaches) update(w *writer, y gemma4.Layer, name, old, row string) string {
	switch bank := w.fn.Memory.Banks[y.Index]; {
	case !bank.Windowed():
		return w.blended(name, old, row, "update_mask")
	case bank.Keep.Sink > 0:
		sinks := int64(bank.Keep.Sink)
		first := w.blended(name+"sinks_", w.slice(name+"sinks", old, 2, 0, sinks), row, w.slice(name+"sinks_mask", "update_mask", 2, 0, sinks))
		return w.shifted(name+"all", first, w.slice(name+"window", old, 2, sinks, w.shape(old)[2]), 1, row)
	}
	return w.shifted(name+"updated", "", old, 1, row)
}

// blended is K·(1−m) + k·m for a one-hot mask.
func (w *writer) blended(name, old, row, mask string) string {
	rest := w.op("sub", name+"others", w.set("x", f16(1)), in("y", mask))
	return w.add2(name+"updated", w.mul(name+"kept", old, rest), w.mul(name+"written", row, mask))
}

// shifted drops rows from the front of a window and puts new ones behind it; what stands in front, if anything, stays there.
func (w *writer) shifted(name, front, window string, drop int64, rows string) string {
	var parts []string
	if front != "" {
		parts = append(parts, front)
	}
	if n := w.shape(window)[2]; drop < n {
		parts = append(parts, w.slice(name+"_kept", window, 2, drop, n))
	}
	if parts = append(parts, rows); len(parts) == 1 {
		return rows
	}
	return w.concat(name, 2, parts...)
}

func (c *portCaches) outputs(w *writer, ports []chunking.Port) {
	for _, p := range ports {
		if p.Role != chunking.RoleCache {
			continue
		}
		if len(p.Layers) == 0 { // the slot that a chunk without full layers declares
			w.output(p.Name, run.InputOf(p.Name))
			continue
		}
		var slots []string
		for _, l := range p.Layers {
			slots = append(slots, c.updated[l][sideOf(p)])
		}
		w.output(p.Name, w.stacked(slots))
	}
}

// sideOf is 0 for ports of keys and 1 for ports of values.
func sideOf(p chunking.Port) int {
	if run.HoldsValues(p) {
		return 1
	}
	return 0
}

// stacked joins slots along the first axis.
func (w *writer) stacked(slots []string) string {
	if len(slots) == 1 {
		return slots[0]
	}
	return w.concat("slots", 0, slots...)
}

// batchRows are those of a prefill call: nothing came before.
type batchRows struct{}

func (batchRows) store(_ *writer, _ gemma4.Layer, k, v string) (keys, values string) { return k, v }

func (batchRows) outputs(w *writer, ports []chunking.Port) {
	for _, p := range ports {
		if p.Role == chunking.RoleCache {
			w.output(p.Name, w.rows[p.Layers[0]][sideOf(p)])
		}
	}
}

// trialRows are those of a verify call: the caches stay as they are, and the new rows go out for the caller to commit. With whole
// windows they stand behind the old ones; shifted in, they push the oldest out (spec forward.md §4.10).
type trialRows struct {
	fresh map[int][2]string
}

func (c *trialRows) store(w *writer, y gemma4.Layer, k, v string) (keys, values string) {
	c.fresh[y.Index] = [2]string{k, v}
	oldK, oldV := w.cacheOf(y.Index)
	d := int64(y.HeadDim)
	return c.join(w, y, "keys", w.slice("k_old", oldK, 3, 0, d), k), c.join(w, y, "values", w.slice("v_old", oldV, 3, 0, d), v)
}

func (c *trialRows) join(w *writer, y gemma4.Layer, name, old, rows string) string {
	drop := int64(w.fn.Tokens)
	if w.fn.Window == run.WholeWindow {
		drop = 0
	}
	bank := w.fn.Memory.Banks[y.Index]
	if !bank.Windowed() {
		return w.indicated(name, old, rows, "update_indicator")
	}
	front, sinks := "", int64(bank.Keep.Sink)
	if sinks > 0 {
		front = w.indicated(name+"_sinks", w.slice(name+"_first", old, 2, 0, sinks), rows, w.slice(name+"_indicator", "update_indicator", 2, 0, sinks))
	}
	return w.shifted(name, front, w.slice(name+"_window", old, 2, sinks, w.shape(old)[2]), drop, rows)
}

// indicated writes rows where an indicator [1, 1, S, T] says: K·(1−Σ_t m_t) + m·k.
func (w *writer) indicated(name, old, rows, marks string) string {
	written := w.op("reduce_sum", name+"_written", in("x", marks), w.ints("axes", 3), w.flag("keep_dims", true))
	rest := w.op("sub", name+"_others", w.set("x", f16(1)), in("y", written))
	if heads := w.shape(rows)[1]; heads > 1 {
		marks = w.op("tile", name+"_marks", in("x", marks), w.ints("reps", 1, heads, 1, 1))
	}
	return w.add2(name, w.mul(name+"_old", old, rest), w.matmul(name+"_new", marks, rows, false))
}

func (c *trialRows) outputs(w *writer, ports []chunking.Port) { outputFresh(w, ports, c.fresh) }

// outputFresh gives out the rows of a call: [n, K, T, d].
func outputFresh(w *writer, ports []chunking.Port, fresh map[int][2]string) {
	for _, p := range ports {
		if p.Role != chunking.RoleCache {
			continue
		}
		var slots []string
		for _, l := range p.Layers {
			slots = append(slots, fresh[l][sideOf(p)])
		}
		w.output(p.Name, w.stacked(slots))
	}
}
