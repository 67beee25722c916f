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

// cache is the keys or values of a state, where entry 2i is the keys and 2i+1 the values of owner i (spec forward.md §4.11).
func (c *recordedCall) cache(p chunking.Port) *run.Tensor {
	side, name, windowed := 0, "kv_cache_full", strings.Contains(p.Name, "sliding")
	if p.Name[0] == 'V' {
		side = 1
	}
	if windowed {
		name = "kv_cache_sliding"
	}
	state := c.states[name]
	if state == nil {
		return zeros(p.Shape) // an unused slot
	}
	half := interp.NewTensor(state.DType, state.Shape[0]/2, state.Shape[1], state.Shape[2], state.Shape[3])
	n := len(state.Floats) / state.Shape[0]
	for i := range half.Shape[0] {
		copy(half.Floats[i*n:(i+1)*n], state.Floats[(2*i+side)*n:])
	}
	if windowed {
		half = turned(half, c.pos)
	}
	return ported(half)
}

// outputs names results as the recorded chunk does.
func (c *recordedCall) outputs(ports []chunking.Port, out run.Ports) map[string]*interp.Tensor {
	got := map[string]*interp.Tensor{}
	head := out["token_id"] != nil
	for _, p := range ports {
		x := plain(out[p.Name])
		switch {
		case p.Role == chunking.RoleCache && c.ring:
			c.intoState(got, p.Name, x)
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

// intoState files an updated cache in the state that it belongs to.
func (c *recordedCall) intoState(got map[string]*interp.Tensor, port string, x *interp.Tensor) {
	name, side := "kv_cache_full", 0
	if strings.Contains(port, "sliding") {
		name, x = "kv_cache_sliding", ringed(x, c.pos+1)
	}
	if port[0] == 'V' {
		side = 1
	}
	if c.states[name] == nil {
		return
	}
	if got[name] == nil {
		got[name] = interp.NewTensor(mil.Float16, c.states[name].Shape...)
	}
	n := len(x.Floats) / x.Shape[0]
	for i := range x.Shape[0] {
		copy(got[name].Floats[(2*i+side)*n:][:n], x.Floats[i*n:(i+1)*n])
	}
}
