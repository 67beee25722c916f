package emit

import (
	"slices"

	"anelab/chunking"
	"anelab/chunking/run"
	"anelab/coreml/mil"
	"anelab/gemma4"
)

// State functions keep caches in two states per chunk, K of owner i at 2i and V at 2i+1 (spec forward.md §4.11): every position in
// kv_cache_full, the window as a ring in kv_cache_sliding. A call of one token writes its row and reads the ring. A call of several
// reads the ring as it was, with the new rows behind it: written first, they would overwrite what the first of them still see.

var stateNames = [2]string{gemma4.Sliding: "kv_cache_sliding", gemma4.Full: "kv_cache_full"}

// positionNames are the inputs that say where rows are written: in a ring, and in a cache of every position.
var positionNames = [2]string{gemma4.Sliding: "ring_pos", gemma4.Full: "current_pos"}

// statePorts are the state of one kind that a chunk has: n owners' keys and values.
type statePort struct {
	kind   gemma4.Kind
	shape  []int64 // [2n, K, S, width]
	layers []int
}

// statePorts are made from the cache ports of decode; kinds without an owner have none.
func statePorts(layers []gemma4.Layer, decode run.Signature) []statePort {
	var states []statePort
	for _, p := range decode.Inputs {
		if p.Role != chunking.RoleCache || run.HoldsValues(p) || len(p.Layers) == 0 {
			continue
		}
		shape := int64s(p.Shape)
		shape[0] *= 2
		states = append(states, statePort{layers[p.Layers[0]].Kind, shape, p.Layers})
	}
	return states
}

// withStates is a signature whose caches are states: what is left of the ports, and the positions of the rows.
func withStates(f *run.Function, sig run.Signature, states []statePort) run.Signature {
	var s run.Signature
	for _, p := range sig.Inputs {
		if p.Role != chunking.RoleCache && p.Role != chunking.RoleUpdate {
			s.Inputs = append(s.Inputs, p)
		}
	}
	if len(states) > 0 {
		for _, name := range []string{"current_pos", "ring_pos"} {
			s.Inputs = append(s.Inputs, chunking.Port{Name: name, Role: chunking.RoleUpdate, Type: chunking.Int32, Shape: []int{1}})
		}
	}
	for _, p := range sig.Outputs {
		if p.Name == "hidden_states_out" && hasPort(sig.Outputs, "token_id") {
			p.Name = "hidden_normed"
		}
		if p.Role != chunking.RoleCache || f.Kind == run.Verify {
			s.Outputs = append(s.Outputs, p)
		}
	}
	return s
}

// continuing is a prefill function over states: unlike one without a cache it goes on at any position, and its window is whole.
func continuing(plan *chunking.Plan, f *run.Function) (*run.Function, error) {
	v, err := run.VerifyOf(plan, f.Tokens, run.WholeWindow)
	if err != nil {
		return nil, err
	}
	out := &run.Function{Name: f.Name, Kind: run.Prefill, Tokens: f.Tokens, Memory: f.Memory}
	for i, sig := range v.Chunks {
		head := plan.Chunks[i].Head
		s := run.Signature{Inputs: sig.Inputs}
		if head {
			s.Inputs = append(slices.Clone(s.Inputs), chunking.Port{Name: "last_position_mask", Role: chunking.RoleMask, Shape: []int{1, f.Tokens, 1}})
			s.Outputs = []chunking.Port{{Name: "token_id", Role: chunking.RoleToken, Type: chunking.Int32, Shape: []int{1}}, {Name: "token_logit", Role: chunking.RoleToken, Shape: []int{1}}}
		}
		for _, p := range sig.Outputs {
			if p.Role != chunking.RoleCache && p.Role != chunking.RoleToken && !(head && p.Role == chunking.RoleHidden) {
				s.Outputs = append(s.Outputs, p)
			}
		}
		out.Chunks = append(out.Chunks, s)
	}
	return out, nil
}

// stateCaches are the states of a function.
type stateCaches struct {
	fresh map[int][2]string // of verify calls, which write nothing
}

func (c *stateCaches) store(w *writer, y gemma4.Layer, k, v string) (keys, values string) {
	c.fresh[y.Index] = [2]string{k, v}
	state, slot := w.stateOf(y)
	before := w.op("read_state", "state", in("input", state))
	both := w.concat("rows", 0, w.widened("k_wide", k, w.shape(state)[3]), w.widened("v_wide", v, w.shape(state)[3]))
	after := before
	if w.fn.Kind != run.Verify {
		w.effect("write_state", "written", in("input", state), in("data", w.placed(y, before, both, slot)))
		after = w.op("read_state", "state", in("input", state))
	} else if y.Kind == gemma4.Full {
		after = w.placed(y, before, both, slot)
	}
	if y.Kind == gemma4.Full || w.fn.Tokens == 1 {
		return w.rowsIn(after, slot, "keys", y), w.rowsIn(after, slot+1, "values", y)
	}
	return w.concat("keys", 2, w.rowsIn(before, slot, "k_old", y), k), w.concat("values", 2, w.rowsIn(before, slot+1, "v_old", y), v)
}

// stateOf is the state that holds layer y, and the slot of its keys.
func (w *writer) stateOf(y gemma4.Layer) (state string, slot int64) {
	for _, s := range w.fn.states {
		if i, ok := slotOf(chunking.Port{Layers: s.layers}, y.Index); ok {
			return stateNames[s.kind], int64(2 * i)
		}
	}
	panic("emit: an owner without a state")
}

// placed is a state with rows [2, K, T, width] of one layer written at the position of the call.
func (w *writer) placed(y gemma4.Layer, state, rows string, slot int64) string {
	shape, at := w.shape(state), positionNames[y.Kind]
	past := w.op("add", "past", in("x", at), w.set("y", mil.Scalar(int32(w.fn.Tokens))))
	corner := func(name string, first, second int64, third string, fourth int64) string {
		head, tail := mil.Vector(int32(first), int32(second)), mil.Vector(int32(fourth))
		values := arg{param: "values"}
		values.bindings = append(values.bindings, w.set("corner", head).bindings[0], mil.Ref(third), w.set("corner", tail).bindings[0])
		return w.op("concat", name, values, w.set("axis", mil.Scalar(int32(0))), w.flag("interleave", false))
	}
	begin, end := corner("begin", slot, 0, at, 0), corner("end", slot+2, shape[1], past, shape[3])
	return w.op("slice_update", "updated", in("x", state), in("update", rows), in("begin", begin), in("end", end), w.ints("stride", 1, 1, 1, 1))
}

// rowsIn are one slot of a state in the width of a head.
func (w *writer) rowsIn(state string, slot int64, name string, y gemma4.Layer) string {
	return w.slice(name, w.slice(name+"_wide", state, 0, slot, slot+1), 3, 0, int64(y.HeadDim))
}

func (c *stateCaches) outputs(w *writer, ports []chunking.Port) { outputFresh(w, ports, c.fresh) }
