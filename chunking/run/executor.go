package run

import (
	"context"
	"fmt"
	"strings"

	"anelab/chunking"
	"anelab/gemma4"
	"anelab/internal/format"
	"anelab/swa"
)

// Executor runs the chunks of one plan with the weights of one model. Not safe for concurrent use.
type Executor struct {
	Plan   *chunking.Plan
	Decode *Function

	model *gemma4.Model
	ws    gemma4.Workspace
	proj  []float32 // scratch of the per-layer projection
}

// New binds a plan to a loaded model of the same configuration.
func New(m *gemma4.Model, plan *chunking.Plan) (*Executor, error) {
	if len(plan.Model.Layers) != len(m.Layers) || plan.Model.Config.HiddenSize != m.Config.HiddenSize {
		return nil, &format.Error{Field: "plan", Got: fmt.Sprintf("a plan for %d layers of width %d", len(plan.Model.Layers), plan.Model.Config.HiddenSize),
			Want: fmt.Sprintf("%d layers of width %d as the checkpoint", len(m.Layers), m.Config.HiddenSize)}
	}
	decode, err := DecodeOf(plan)
	if err != nil {
		return nil, err
	}
	for i, want := range decode.Memory.Policies {
		if got := m.Policy(i); got.String() != want.String() {
			return nil, &format.Error{Field: fmt.Sprintf("attention of layer %d", i), Got: got.String(), Want: want.String() + " as the layout says"}
		}
	}
	return &Executor{Plan: plan, Decode: decode, model: m}, nil
}

// Invocation is one call of one chunk.
type Invocation struct {
	Function *Function
	Chunk    int
	Pos      int // of the first token
	In       Ports
}

// Call runs a chunk on its inputs. Inputs are left as they are; outputs are fresh. The masks must say the same position: a graph
// knows no other, and Pos only names rows in sums and taps. trace may be nil.
func (e *Executor) Call(ctx context.Context, v Invocation, trace gemma4.Tracer) (Ports, error) {
	if err := e.begin(v); err != nil {
		return nil, err
	}
	k := &call{Invocation: v, e: e, c: e.Plan.Chunks[v.Chunk], sig: v.Function.Chunks[v.Chunk], out: Ports{}}
	if err := k.check(); err != nil {
		return nil, err
	}
	for _, p := range k.sig.Outputs {
		k.out[p.Name] = newTensor(p)
	}
	return k.out, k.run(ctx, trace)
}

// call is one chunk call in progress.
type call struct {
	Invocation
	e    *Executor
	c    *chunking.Chunk
	sig  Signature
	out  Ports
	pass gemma4.Pass
}

func (k *call) check() error {
	if err := checkInputs(k.c, k.sig.Inputs, k.In); err != nil {
		return err
	}
	last := k.e.Plan.Context - k.Function.Tokens
	if k.Function.Kind == Prefill {
		last = 0
	}
	if k.Pos < 0 || k.Pos > last {
		want := fmt.Sprintf("below the compiled context %d", k.e.Plan.Context)
		if k.Function.Tokens > 1 {
			want = fmt.Sprintf("%d tokens from position %d at most", k.Function.Tokens, last)
		}
		return &format.Error{Field: "position", Got: fmt.Sprint(k.Pos), Want: want}
	}
	return k.Function.checkMasks(k.sig, k.In, k.Pos)
}

func (k *call) run(ctx context.Context, trace gemma4.Tracer) error {
	m := k.e.model
	x := k.In["hidden_states"].clone().Data
	k.pass = gemma4.Pass{First: k.Pos, T: k.Function.Tokens, X: x, Stores: make([]swa.Store, len(m.Layers)), Trace: trace}
	m.Begin(&k.pass, &k.e.ws)
	k.bindRope()
	k.bindPLE()
	k.bindOwners()
	k.bindHandoffs()
	if err := m.RunLayers(ctx, &k.pass, k.c.Lo, k.c.Hi); err != nil {
		return err
	}
	k.exportRows()
	if out := k.out["hidden_states_out"]; out != nil {
		copy(out.Data, x)
	}
	if k.c.Head {
		return k.head(trace)
	}
	return nil
}

// bindRope takes the rotary rows from the ports.
func (k *call) bindRope() {
	for kind, names := range RopeNames {
		if cos, ok := k.In[names[0]]; ok {
			k.pass.Rope[kind] = gemma4.RopeRows{Cos: cos.Data, Sin: k.In[names[1]].Data}
		}
	}
}

// bindPLE combines the raw table rows in the first chunk; later chunks receive the combined rows.
func (k *call) bindPLE() {
	if combined, ok := k.In["per_layer_combined"]; ok {
		k.pass.PLE = combined.Data
	}
	raw, ok := k.In["per_layer_raw"]
	if !ok {
		return
	}
	ple := raw.clone().Data
	if len(k.e.proj) < len(ple) {
		k.e.proj = make([]float32, len(ple))
	}
	k.e.model.CombinePLE(ple, k.e.proj[:len(ple)], k.pass.X)
	k.pass.PLE = ple
	if k.pass.Trace != nil {
		m := k.e.model
		k.pass.Trace(gemma4.Tap{Point: gemma4.PointPLE, Layer: -1, First: k.Pos, Data: ple, Shape: []int{k.pass.T, len(m.Layers), m.Config.HiddenSizePerLayer}})
	}
	if out, ok := k.out["per_layer_combined_out"]; ok {
		copy(out.Data, ple)
	}
}

// slot is part s of a cache tensor [n, K, S, width].
func slot(t *Tensor, s int) swa.Slot {
	n := t.Shape[1] * t.Shape[2] * t.Shape[3]
	return swa.Slot{Data: t.Data[s*n : (s+1)*n], Rows: t.Shape[2], Width: t.Shape[3]}
}

// bindOwners gives every owner of the chunk the store that the function has for it: the output cache itself, which it updates
// there; caches with room behind them for rows on trial; rows alone where nothing came before.
func (k *call) bindOwners() {
	if k.Function.Kind == Prefill {
		for _, y := range k.e.model.Layers[k.c.Lo:k.c.Hi] {
			if y.OwnsKV() {
				k.pass.Stores[y.Index] = swa.NewLinear(swa.Shape{KVHeads: y.KVHeads, HeadDim: y.HeadDim}, k.Function.Tokens)
			}
		}
		return
	}
	for _, p := range k.sig.Inputs {
		if p.Role != chunking.RoleCache || HoldsValues(p) {
			continue
		}
		keys, values := k.In[p.Name], k.In["V"+p.Name[1:]]
		if k.Function.Kind == Decode {
			keys, values = keys.copyTo(k.out[outName(p.Name)]), values.copyTo(k.out[outName("V"+p.Name[1:])])
		}
		for s, l := range p.Layers {
			k.pass.Stores[l] = k.cacheStore(k.e.model.Layers[l], k.Function.slotOf(keys, s, l), k.Function.slotOf(values, s, l))
		}
	}
}

// outName is the output that carries an updated cache.
func outName(in string) string { return strings.TrimSuffix(in, "_in") + "_out" }

// InputOf is the cache port that an output such as K_full_out updates.
func InputOf(out string) string { return strings.TrimSuffix(out, "_out") + "_in" }

// HoldsValues reports whether a cache or hand-off port holds values, not keys.
func HoldsValues(p chunking.Port) bool {
	return strings.HasPrefix(strings.TrimPrefix(p.Name, "new_"), "V") || strings.HasSuffix(p.Name, "_v")
}

func (k *call) cacheStore(y gemma4.Layer, ks, vs swa.Slot) swa.Store {
	windowed := k.Function.Memory.Banks[y.Index].Windowed()
	switch {
	case k.Function.Kind == Decode && ks.Sinks > 0:
		return swa.NewSinks(ks, vs, y.HeadDim, k.Pos, k.In["update_mask"].Data)
	case k.Function.Kind == Decode && windowed:
		return swa.NewShift(ks, vs, y.HeadDim, k.Pos)
	case k.Function.Kind == Decode:
		return swa.NewMasked(ks, vs, y.HeadDim, k.Pos, k.In["update_mask"].Data)
	case windowed:
		dropped := 0
		if k.Function.Window == ShiftedWindow {
			dropped = k.pass.T
		}
		return newAppended(resized(ks, dropped, k.pass.T), resized(vs, dropped, k.pass.T), y.HeadDim, k.Pos, k.written())
	}
	return newIndicated(ks, vs, y.HeadDim, k.Pos, k.written())
}

// written says which rows of a cache a verify call writes.
func (k *call) written() indicator {
	in := indicator{tokens: k.pass.T}
	if t := k.In["update_indicator"]; t != nil { // no windows without sinks need it
		in.marks = t.Data
	}
	return in
}

// bindHandoffs lets shared layers read a donor's cache that an earlier chunk has updated.
func (k *call) bindHandoffs() {
	for _, p := range k.sig.Inputs {
		if p.Role != chunking.RoleHandoff || HoldsValues(p) {
			continue
		}
		donor := k.e.model.Layers[p.Layers[0]]
		ks, vs := k.Function.slotOf(k.In[p.Name], 0, donor.Index), k.Function.slotOf(k.In[strings.TrimSuffix(p.Name, "k")+"v"], 0, donor.Index)
		k.pass.Stores[donor.Index] = swa.NewHandoff(ks, vs, donor.HeadDim, k.Pos, k.Function.place(donor.Index, k.Pos, ks.Rows).base)
	}
}

// exportRows copies rows out of the stores, head width only: donors' for later chunks, and those that a prefill or verify call
// has made. Caches of a decode call are their own outputs.
func (k *call) exportRows() {
	for _, p := range k.sig.Outputs {
		switch {
		case p.Role == chunking.RoleHandoff:
			k.export(p, k.Function.place(p.Layers[0], k.Pos, p.Shape[2]), swa.Span{Hi: k.Pos + k.pass.T})
		case p.Role == chunking.RoleCache && k.Function.Kind != Decode:
			k.export(p, place{base: k.Pos}, swa.Span{Lo: k.Pos, Hi: k.Pos + k.pass.T})
		}
	}
}

// export writes rows of the port's layers into [n, K, S, d]; rows without a position stay zero.
func (k *call) export(p chunking.Port, at place, held swa.Span) {
	for s, l := range p.Layers {
		store := k.pass.Stores[l]
		view := store.Keys()
		if HoldsValues(p) {
			view = store.Values()
		}
		copyRows(slot(k.out[p.Name], s), view, at, held)
	}
}
