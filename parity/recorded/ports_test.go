package recorded_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/chunking"
	"anelab/chunking/run"
	"anelab/coreml/interp"
	"anelab/coreml/mil"
	"anelab/swa"
)

type swaSpan = swa.Span

// recordedCall is a call of one chunk in the form of upstream's ports.
type recordedCall struct {
	in     map[string]*interp.Tensor
	states interp.State
	kind   run.Kind
	tokens int
	pos    int // of the first token
	lo     int // first layer of the chunk
	window int // W
	ring   bool
}

// run makes the call with the ports of the Go model and turns its outputs back.
func (c *recordedCall) run(t *testing.T, e *run.Executor, chunk int) map[string]*interp.Tensor {
	f := c.function(t, e)
	in := run.Ports{}
	for _, p := range f.Chunks[chunk].Inputs {
		in[p.Name] = c.input(t, f, p)
	}
	out, err := e.Call(background, run.Invocation{Function: f, Chunk: chunk, Pos: c.pos, In: in}, nil)
	require.NoError(t, err)
	return c.outputs(f.Chunks[chunk].Outputs, out)
}

func (c *recordedCall) function(t *testing.T, e *run.Executor) *run.Function {
	switch c.kind {
	case run.Prefill:
		f, err := run.PrefillOf(e.Plan, c.tokens)
		require.NoError(t, err)
		return f
	case run.Verify:
		f, err := run.VerifyOf(e.Plan, c.tokens, run.WholeWindow)
		require.NoError(t, err)
		return f
	}
	return e.Decode
}

// input is the value of a port: what was recorded, a cache out of a state, a mask for the same position.
func (c *recordedCall) input(t *testing.T, f *run.Function, p chunking.Port) *run.Tensor {
	x := c.in[p.Name]
	switch {
	case (p.Role == chunking.RoleMask || p.Role == chunking.RoleUpdate) && p.Name != "last_position_mask":
		m := zeros(p.Shape)
		f.FillMask(p, m.Data, c.pos)
		if c.kind == run.Verify && p.Name == "causal_mask_sliding" {
			c.checkShifted(t, x)
		} else if x != nil && !c.ring {
			require.Equal(t, m.Data, x.Floats, p.Name)
		}
		return m
	case p.Role == chunking.RoleCache && c.ring:
		return c.cache(p)
	case p.Role == chunking.RoleHandoff && strings.HasPrefix(p.Name, "kv13") && c.kind == run.Verify:
		return behind(x, c.tokens)
	case p.Role == chunking.RoleHandoff && strings.HasPrefix(p.Name, "kv13") && c.ring:
		return ported(turned(x, c.pos+1))
	}
	require.NotNil(t, x, p.Name)
	return ported(x)
}

// checkShifted holds a recorded mask against spec forward.md §4.10: slot i of row t is visible for max(0, W−K−start) ≤ i ≤ W−K+t.
func (c *recordedCall) checkShifted(t *testing.T, mask *interp.Tensor) {
	k, w := mask.Shape[2], mask.Shape[3]
	for row := range k {
		for i, v := range mask.Floats[row*w : (row+1)*w] {
			require.Equal(t, i >= w-k-c.pos && i <= w-k+row, v == 0, "row %d, slot %d", row, i)
		}
	}
}

func zeros(shape []int) *run.Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return &run.Tensor{Shape: shape, Data: make([]float32, n)}
}

func ported(x *interp.Tensor) *run.Tensor {
	return &run.Tensor{Shape: x.Shape, Data: x.Floats, IDs: x.Ints}
}

func plain(x *run.Tensor) *interp.Tensor {
	if x.IDs != nil {
		return &interp.Tensor{DType: mil.Int32, Shape: x.Shape, Ints: x.IDs}
	}
	return &interp.Tensor{DType: mil.Float16, Shape: x.Shape, Floats: x.Data}
}

// moved copies the rows of [n, K, S, d] to the places that a function gives them; a negative place drops a row.
func moved(x *interp.Tensor, rows int, place func(row int) int) *interp.Tensor {
	shape := slices.Clone(x.Shape)
	shape[2] = rows
	y := interp.NewTensor(x.DType, shape...)
	s, d := x.Shape[2], x.Shape[3]
	for head := range x.Shape[0] * x.Shape[1] {
		for row := range s {
			if to := place(row); to >= 0 {
				copy(y.Floats[(head*rows+to)*d:][:d], x.Floats[(head*s+row)*d:])
			}
		}
	}
	return y
}

// turned takes a ring whose newest position is next−1 to rows in order, the newest last.
func turned(ring *interp.Tensor, next int) *interp.Tensor {
	w := ring.Shape[2]
	return moved(ring, w, func(slot int) int {
		for p := next - 1; p >= max(0, next-w); p-- {
			if p%w == slot {
				return p - (next - w)
			}
		}
		return -1
	})
}

// ringed is the way back.
func ringed(rows *interp.Tensor, next int) *interp.Tensor {
	w := rows.Shape[2]
	return moved(rows, w, func(row int) int {
		if p := next - w + row; p >= 0 {
			return p % w
		}
		return -1
	})
}

// behind puts k empty rows before those of a window.
func behind(x *interp.Tensor, k int) *run.Tensor {
	return ported(moved(x, x.Shape[2]+k, func(row int) int { return row + k }))
}

// kept says where a state holds slot i of a cache port: keys of owner n in entry 2n, values in 2n+1. Owners are counted by kind of
// layer, all together where there is one state for both (spec forward.md §4.11). Windows are the first rows of an entry.
func (c *recordedCall) kept(p chunking.Port, i int) (state string, entry int) {
	side, name := 0, "kv_cache_full"
	if p.Name[0] == 'V' {
		side = 1
	}
	if strings.Contains(p.Name, "sliding") {
		name = "kv_cache_sliding"
	}
	if c.states[unified] != nil && i < len(p.Layers) {
		return unified, 2*(p.Layers[i]-c.lo) + side
	}
	return name, 2*i + side
}

const unified = "kv_cache_unified"

// entryRows are the first rows of an entry [K, S, d] of a state, by head.
func entryRows(state *interp.Tensor, entry, head, rows int) []float32 {
	s, d := state.Shape[2], state.Shape[3]
	return state.Floats[(entry*state.Shape[1]+head)*s*d:][:rows*d]
}

// cache is the keys or values of a state as a port has them.
func (c *recordedCall) cache(p chunking.Port) *run.Tensor {
	x := interp.NewTensor(mil.Float16, p.Shape...)
	for i := range p.Shape[0] {
		name, entry := c.kept(p, i)
		if c.states[name] == nil {
			continue // an unused slot
		}
		for head := range p.Shape[1] {
			copy(entryRows(x, i, head, p.Shape[2]), entryRows(c.states[name], entry, head, p.Shape[2]))
		}
	}
	if strings.Contains(p.Name, "sliding") {
		x = turned(x, c.pos)
	}
	return ported(x)
}

// outputs names results as the recorded chunk does.
func (c *recordedCall) outputs(ports []chunking.Port, out run.Ports) map[string]*interp.Tensor {
	got := map[string]*interp.Tensor{}
	head := out["token_id"] != nil
	for _, p := range ports {
		x := plain(out[p.Name])
		switch {
		case p.Role == chunking.RoleCache && c.ring:
			c.intoState(got, p, x)
			continue
		case strings.HasPrefix(p.Name, "kv13") && c.kind == run.Verify:
			w := x.Shape[2] - c.tokens
			x = moved(x, w, func(row int) int { return row - c.tokens })
		case strings.HasPrefix(p.Name, "kv13") && c.ring:
			x = ringed(x, c.pos+1)
		case p.Name == "hidden_states_out" && head && c.ring:
			got["hidden_normed"] = x
			continue
		}
		got[p.Name] = x
	}
	return got
}

// intoState files an updated cache in the state that it belongs to. What no row was ever written to stays as it was.
func (c *recordedCall) intoState(got map[string]*interp.Tensor, p chunking.Port, x *interp.Tensor) {
	if strings.Contains(p.Name, "sliding") {
		x = ringed(x, c.pos+1)
	}
	for i := range x.Shape[0] {
		name, entry := c.kept(p, i)
		if c.states[name] == nil {
			continue
		}
		if got[name] == nil {
			got[name] = c.states[name].Clone()
		}
		for head := range x.Shape[1] {
			copy(entryRows(got[name], entry, head, x.Shape[2]), entryRows(x, i, head, x.Shape[2]))
		}
	}
}

// hand: a chunk of layers 3 (sliding), 4 (full), 5 (sliding), W = 2, C = 3, one column: entries are K3 V3 K4 V4 K5 V5, and windows
// their first two rows. At position 3 the ring holds position 2 in row 0; the next row goes into row 1.
func TestUnifiedState(t *testing.T) {
	state := interp.F16([]float32{30, 31, 0, 32, 33, 0, 40, 41, 42, 43, 44, 45, 50, 51, 0, 52, 53, 0}, 6, 1, 3, 1)
	c := &recordedCall{states: interp.State{unified: state}, pos: 3, lo: 3}
	sliding := chunking.Port{Name: "V_sliding_in", Shape: []int{2, 1, 2, 1}, Layers: []int{3, 5}}
	require.Equal(t, []float32{33, 32, 53, 52}, c.cache(sliding).Data, "oldest first: position 1, then position 2")
	full := chunking.Port{Name: "K_full_in", Shape: []int{1, 1, 3, 1}, Layers: []int{4}}
	require.Equal(t, []float32{40, 41, 42}, c.cache(full).Data)

	got := map[string]*interp.Tensor{}
	c.intoState(got, sliding, interp.F16([]float32{32, 7, 52, 8}, 2, 1, 2, 1))
	require.Equal(t, []float32{30, 31, 0, 32, 7, 0, 40, 41, 42, 43, 44, 45, 50, 51, 0, 52, 8, 0}, got[unified].Floats)
}
