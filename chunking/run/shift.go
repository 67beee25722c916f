package run

import (
	"fmt"

	"anelab/attention"
	"anelab/chunking"
	"anelab/internal/format"
	"anelab/swa"
)

// A verify call with [ShiftedWindow] shows its rows less than the model's layers would look at: the shift has dropped positions
// that only the last row is done with. A model is loaded with the policies of [Shiftable] to be run like that.

// shift is the call in progress, for the policies of one model.
type shift struct {
	first, tokens int
	rows          map[int]int // of the windows that are read, by the layer that owns them; nothing for calls that shift nothing away
}

// shiftable is a policy that does not see what a shift has dropped.
type shiftable struct {
	attention.Policy
	source int // the layer that owns the rows
	sinks  int // positions that no shift drops
	call   *shift
}

// Unwrap is the policy as it is.
func (s shiftable) Unwrap() attention.Policy { return s.Policy }

// Visible is what the policy shows, without the positions that are gone.
func (s shiftable) Visible(dst []swa.Span, g int, pos int) []swa.Span {
	from := len(dst)
	dst = s.Policy.Visible(dst, g, pos)
	rows, ok := s.call.rows[s.source]
	if !ok {
		return dst
	}
	lost := s.call.first + s.call.tokens - rows
	var kept []swa.Span
	for _, span := range dst[from:] {
		for _, part := range []swa.Span{{Lo: span.Lo, Hi: min(span.Hi, s.sinks)}, {Lo: max(span.Lo, s.sinks, lost), Hi: span.Hi}} {
			if last := len(kept) - 1; part.Len() > 0 && last >= 0 && kept[last].Hi == part.Lo {
				kept[last].Hi = part.Hi
			} else if part.Len() > 0 {
				kept = append(kept, part)
			}
		}
	}
	return append(dst[:from], kept...)
}

// Shiftable are the policies of a plan's layers, for a model that executors shall run with [ShiftedWindow]; in all other calls
// they are the plan's own. A model loaded with them serves one executor at a time.
func Shiftable(p *chunking.Plan) (map[int]attention.Policy, error) {
	m, err := MemoryOf(p)
	if err != nil {
		return nil, err
	}
	call, policies := &shift{}, map[int]attention.Policy{}
	for i, y := range p.Model.Layers {
		policies[i] = m.Policies[i]
		if b := m.Banks[i]; b.Windowed() {
			policies[i] = shiftable{m.Policies[i], y.KVSource, b.Keep.Sink, call}
		}
	}
	return policies, nil
}

// begin tells the policies of the model which call they are asked for.
func (e *Executor) begin(v Invocation) error {
	f := v.Function
	now := shift{first: v.Pos, tokens: f.Tokens}
	shifted := f.Kind == Verify && f.Window == ShiftedWindow
	if shifted {
		now.rows = f.windowsRead(f.Chunks[v.Chunk])
	}
	for i := range e.Plan.Model.Layers {
		s, ok := e.model.Policy(i).(shiftable)
		switch {
		case ok:
			*s.call = now
		case shifted && f.Memory.Banks[i].Windowed():
			return &format.Error{Field: f.Name, Got: fmt.Sprintf("layer %d, which looks at all of its window", i), Want: "windows that a shift may cut",
				Fix: "load the model with the policies of Shiftable, or verify with whole windows"}
		}
	}
	return nil
}

// windowsRead are the rows behind sinks of the caches and hand-offs that a chunk is given, by layer.
func (f *Function) windowsRead(sig Signature) map[int]int {
	rows := map[int]int{}
	for _, p := range sig.Inputs {
		if p.Role == chunking.RoleCache || p.Role == chunking.RoleHandoff {
			for _, l := range p.Layers {
				rows[l] = p.Shape[2] - f.Memory.Banks[l].Keep.Sink
			}
		}
	}
	return rows
}
