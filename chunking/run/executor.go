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
	Plan *chunking.Plan

	model    *gemma4.Model
	windowed [2]bool // by Kind: caches hold a window, newest row last, instead of every position
	ws       gemma4.Workspace
	proj     []float32 // scratch of the per-layer projection
}

// New binds a plan to a loaded model of the same configuration.
func New(m *gemma4.Model, plan *chunking.Plan) (*Executor, error) {
	if len(plan.Model.Layers) != len(m.Layers) || plan.Model.Config.HiddenSize != m.Config.HiddenSize {
		return nil, &format.Error{Field: "plan", Got: fmt.Sprintf("a plan for %d layers of width %d", len(plan.Model.Layers), plan.Model.Config.HiddenSize),
			Want: fmt.Sprintf("%d layers of width %d as the checkpoint", len(m.Layers), m.Config.HiddenSize)}
	}
	if t := plan.Layout.QueryTokens; t > 1 {
		return nil, &format.Error{Field: "query tokens", Got: fmt.Sprint(t), Want: "1", Fix: "only decode chunks are executed"}
	}
	e := &Executor{Plan: plan, model: m}
	return e, e.bindPolicies()
}

// bindPolicies makes sure that the model attends as the layout asks, and finds out which caches are windows.
func (e *Executor) bindPolicies() error {
	asked, err := e.Plan.Layout.Policies(e.Plan.Model)
	if err != nil {
		return err
	}
	seen := [2]bool{}
	for i, y := range e.model.Layers {
		want := y.Policy()
		if p, ok := asked[i]; ok {
			want = p
		}
		if got := e.model.Policy(i); got.String() != want.String() {
			return &format.Error{Field: fmt.Sprintf("attention of layer %d", i), Got: got.String(), Want: want.String() + " as the layout says"}
		}
		if !y.OwnsKV() {
			continue
		}
		windowed := e.model.Retention(i) != swa.All
		if seen[y.Kind] && windowed != e.windowed[y.Kind] {
			return &format.Error{Field: "attn", Got: fmt.Sprintf("%s layers with windows and without", y.Kind), Want: "one kind of cache per kind of layer",
				Fix: "a chunk declares one mask for all its " + y.Kind.String() + " layers"}
		}
		seen[y.Kind], e.windowed[y.Kind] = true, windowed
	}
	return nil
}

// Call runs chunk i at position pos on its inputs. Inputs are left as they are; outputs are fresh. The masks must say the
// same position: a graph knows no other, and pos only names rows in sums and taps. trace may be nil.
func (e *Executor) Call(ctx context.Context, i, pos int, in Ports, trace gemma4.Tracer) (Ports, error) {
	c := e.Plan.Chunks[i]
	if err := checkInputs(c, in); err != nil {
		return nil, err
	}
	if pos < 0 || pos >= e.Plan.Context {
		return nil, &format.Error{Field: "position", Got: fmt.Sprint(pos), Want: fmt.Sprintf("below the compiled context %d", e.Plan.Context)}
	}
	if err := e.checkMasks(in, pos); err != nil {
		return nil, err
	}
	k := &call{e: e, c: c, in: in, out: Ports{}, pos: pos}
	for _, p := range c.Outputs {
		k.out[p.Name] = newTensor(p)
	}
	return k.out, k.run(ctx, trace)
}

// call is one chunk call in progress.
type call struct {
	e    *Executor
	c    *chunking.Chunk
	in   Ports
	out  Ports
	pos  int
	pass gemma4.Pass
}

func (k *call) run(ctx context.Context, trace gemma4.Tracer) error {
	m := k.e.model
	x := k.in["hidden_states"].clone().Data
	k.pass = gemma4.Pass{First: k.pos, T: 1, X: x, Stores: make([]swa.Store, len(m.Layers)), Trace: trace}
	m.Begin(&k.pass, &k.e.ws)
	k.bindRope()
	k.bindPLE()
	k.bindCaches()
	k.bindHandoffs()
	if err := m.RunLayers(ctx, &k.pass, k.c.Lo, k.c.Hi); err != nil {
		return err
	}
	k.exportHandoffs()
	copy(k.out["hidden_states_out"].Data, x)
	if k.c.Head {
		return k.head(trace)
	}
	return nil
}

// bindRope takes the rotary rows from the ports.
func (k *call) bindRope() {
	for kind, names := range [2][2]string{gemma4.Sliding: {"cos_s", "sin_s"}, gemma4.Full: {"cos_f", "sin_f"}} {
		if cos, ok := k.in[names[0]]; ok {
			k.pass.Rope[kind] = gemma4.RopeRows{Cos: cos.Data, Sin: k.in[names[1]].Data}
		}
	}
}

// bindPLE combines the raw table rows in the first chunk; later chunks receive the combined rows.
func (k *call) bindPLE() {
	if combined, ok := k.in["per_layer_combined"]; ok {
		k.pass.PLE = combined.Data
	}
	raw, ok := k.in["per_layer_raw"]
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
		k.pass.Trace(gemma4.Tap{Point: gemma4.PointPLE, Layer: -1, First: k.pos, Data: ple, Shape: []int{1, len(m.Layers), m.Config.HiddenSizePerLayer}})
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

// bindCaches copies every cache to its output and lets the owning layers update it there.
func (k *call) bindCaches() {
	for _, p := range k.c.Inputs {
		if p.Role != chunking.RoleCache {
			continue
		}
		copy(k.out[outName(p.Name)].Data, k.in[p.Name].Data)
		if !strings.HasPrefix(p.Name, "K_") {
			continue
		}
		kOut, vOut := k.out[outName(p.Name)], k.out[outName("V"+p.Name[1:])]
		for s, l := range p.Layers {
			k.pass.Stores[l] = k.cacheStore(l, slot(kOut, s), slot(vOut, s))
		}
	}
}

// base is the position of row 0 of a cache whose newest row is at position last.
func (e *Executor) base(y gemma4.Layer, s swa.Slot, last int) int {
	if e.windowed[y.Kind] {
		return last - (s.Rows - 1)
	}
	return 0
}

// outName is the output that carries an updated cache.
func outName(in string) string { return strings.TrimSuffix(in, "_in") + "_out" }

func (k *call) cacheStore(l int, ks, vs swa.Slot) swa.Store {
	y := k.e.model.Layers[l]
	if k.e.windowed[y.Kind] {
		return swa.NewShift(ks, vs, y.HeadDim, k.pos)
	}
	return swa.NewMasked(ks, vs, y.HeadDim, k.pos, k.in["update_mask"].Data)
}

// bindHandoffs lets shared layers read a donor's cache that an earlier chunk has updated.
func (k *call) bindHandoffs() {
	for _, p := range k.c.Inputs {
		if p.Role != chunking.RoleHandoff || !strings.HasSuffix(p.Name, "_k") {
			continue
		}
		donor := k.e.model.Layers[p.Layers[0]]
		ks, vs := slot(k.in[p.Name], 0), slot(k.in[strings.TrimSuffix(p.Name, "k")+"v"], 0)
		k.pass.Stores[donor.Index] = swa.NewHandoff(ks, vs, donor.HeadDim, k.pos, k.e.base(donor, ks, k.pos))
	}
}

// exportHandoffs copies the donors' updated rows, head width only, to the kv13/kv14 outputs.
func (k *call) exportHandoffs() {
	for _, p := range k.c.Outputs {
		if p.Role != chunking.RoleHandoff {
			continue
		}
		store := k.pass.Stores[p.Layers[0]]
		view := store.Keys()
		if strings.HasSuffix(p.Name, "_v") {
			view = store.Values()
		}
		k.export(k.out[p.Name], view, p.Layers[0])
	}
}

// export writes the rows a donor holds into [1, K, S, d]; rows that hold no position yet stay zero.
func (k *call) export(t *Tensor, view swa.View, donor int) {
	y := k.e.model.Layers[donor]
	s := slot(t, 0)
	base := k.e.base(y, s, k.pos)
	for g := range y.KVHeads {
		head := view.Head(g)
		for p := max(base, 0); p <= k.pos; p++ {
			head.Load(s.Data[(g*s.Rows+p-base)*s.Width:][:head.Dim()], p, 1)
		}
	}
}

// head turns the stream into a token: final norm, tied LM head, soft-cap, first maximum. hidden_states_out is the normed row.
func (k *call) head(trace gemma4.Tracer) error {
	m := k.e.model
	normed := k.out["hidden_states_out"].Data
	m.FinalNorm(normed, k.pass.X)
	pre, capped := make([]float32, m.Config.VocabSize), make([]float32, m.Config.VocabSize)
	m.Logits(capped, pre, normed)
	for _, v := range capped {
		if v-v != 0 {
			return gemma4.ErrNotFinite
		}
	}
	best := gemma4.Argmax(capped)
	k.out["token_id"].IDs[0] = int32(best)
	k.out["token_logit"].Data[0] = capped[best]
	if trace != nil {
		trace(gemma4.Tap{Point: gemma4.PointFinalNorm, Layer: -1, First: k.pos, Shape: []int{1, len(normed)}, Data: normed})
		trace(gemma4.Tap{Point: gemma4.PointLogitsPre, Layer: -1, First: k.pos, Shape: []int{1, len(pre)}, Data: pre})
		trace(gemma4.Tap{Point: gemma4.PointLogits, Layer: -1, First: k.pos, Shape: []int{1, len(capped)}, Data: capped})
	}
	return nil
}
