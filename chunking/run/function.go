package run

import (
	"fmt"

	"anelab/chunking"
	"anelab/gemma4"
	"anelab/internal/format"
)

// Function is one way to call the chunks of a plan: a name, a number of tokens, and the ports of every chunk.
type Function struct {
	Name   string
	Kind   Kind
	Tokens int // T
	Window VerifyWindow
	Chunks []Signature
	Memory *Memory
}

// Signature is the ports of one chunk.
type Signature struct{ Inputs, Outputs []chunking.Port }

// Kind says what a call is for.
type Kind uint8

// A decode call continues a sequence by one token. A prefill call starts one: its tokens see each other only (spec forward.md
// §4.9). A verify call tries K tokens and leaves the caches as they are (§4.10).
const (
	Decode Kind = iota
	Prefill
	Verify
)

// VerifyWindow says what the rows of a verify call see of a window.
type VerifyWindow uint8

// ShiftedWindow is the traced chunks' form, with the ports of a plan: K rows are shifted in first, so that row t loses the K−1−t
// oldest positions (spec forward.md §4.10). With WholeWindow the new rows stand behind the old ones, and every row sees all W
// positions: what decoding the tokens one by one would give. Masks and hand-offs are then K rows longer.
const (
	ShiftedWindow VerifyWindow = iota
	WholeWindow
)

// String is the name on the command line.
func (w VerifyWindow) String() string { return [...]string{"shifted", "whole"}[w] }

// MaskNames and RopeNames are the ports that depend on the kind of attention, those of masks where nothing keeps rows in a way of
// its own ([chunking.Bank]), donorName what a hand-off is called.
var (
	MaskNames = [2]string{gemma4.Sliding: "causal_mask_sliding", gemma4.Full: "causal_mask_full"}
	RopeNames = [2][2]string{gemma4.Sliding: {"cos_s", "sin_s"}, gemma4.Full: {"cos_f", "sin_f"}}
	donorName = [2]string{gemma4.Sliding: "kv13", gemma4.Full: "kv14"}
)

// DecodeOf is the decode function of a plan: the plan's own ports.
func DecodeOf(p *chunking.Plan) (*Function, error) {
	if t := p.Layout.QueryTokens; t > 1 {
		return nil, &format.Error{Field: "query tokens", Got: fmt.Sprint(t), Want: "1", Fix: "a plan is of the decode chunks; ask for prefill and verify functions beside it"}
	}
	m, err := MemoryOf(p)
	if err != nil {
		return nil, err
	}
	f := &Function{Name: "decode_q1", Tokens: 1, Memory: m}
	for _, c := range p.Chunks {
		f.Chunks = append(f.Chunks, Signature{c.Inputs, c.Outputs})
	}
	return f, nil
}

// VerifyOf is the verify function of k tokens, called verify_qK whatever k is: the ports that the plan has for k query tokens.
func VerifyOf(p *chunking.Plan, k int, w VerifyWindow) (*Function, error) {
	if k < 2 || k > p.Context {
		return nil, &format.Error{Field: "verify", Got: fmt.Sprintf("%d tokens", k), Want: fmt.Sprintf("2 to the context, %d", p.Context), Fix: "one token is what decode takes"}
	}
	f, wide, err := widened(p, k)
	if err != nil {
		return nil, err
	}
	f.Name, f.Kind, f.Window = "verify_qK", Verify, w
	for _, c := range wide.Chunks {
		f.Chunks = append(f.Chunks, Signature{f.stretched(c.Inputs), f.stretched(c.Outputs)})
	}
	if rows := f.narrowest(p); w == ShiftedWindow && k > rows {
		return nil, &format.Error{Field: "verify", Got: fmt.Sprintf("%d tokens", k), Want: fmt.Sprintf("at most the window of %d", rows),
			Fix: "with whole windows there is no such limit"}
	}
	return f, nil
}

// narrowest is the fewest rows of a windowed cache; the context if there is none.
func (f *Function) narrowest(p *chunking.Plan) int {
	rows := p.Context
	for _, b := range f.Memory.Banks {
		if b.Windowed() {
			rows = min(rows, b.Keep.Last)
		}
	}
	return rows
}

// widened is the plan's layout for t query tokens.
func widened(p *chunking.Plan, t int) (*Function, *chunking.Plan, error) {
	m, err := MemoryOf(p)
	if err != nil {
		return nil, nil, err
	}
	l := p.Layout
	l.QueryTokens = t
	wide, err := l.Plan(p.Model)
	return &Function{Tokens: t, Memory: m}, wide, err
}

// stretched makes room for the old rows of whole windows.
func (f *Function) stretched(ports []chunking.Port) []chunking.Port {
	if f.Window == ShiftedWindow {
		return ports
	}
	var all []chunking.Port
	for _, port := range ports {
		b, masks := f.Memory.bankOf(port.Name)
		switch {
		case masks && b.Windowed():
			port = sized(port, 3, port.Shape[3]+f.Tokens)
		case port.Role == chunking.RoleHandoff && f.Memory.Banks[port.Layers[0]].Windowed():
			port = sized(port, 2, port.Shape[2]+f.Tokens)
		}
		all = append(all, port)
	}
	return all
}

// sized is a port with another length of one axis.
func sized(p chunking.Port, axis, n int) chunking.Port {
	shape := append([]int(nil), p.Shape...)
	shape[axis] = n
	p.Shape = shape
	return p
}

// PrefillOf is the prefill function of n tokens (spec forward.md §4.9): no caches go in; the keys and values of every owner
// come out as rows of their natural width. One causal mask serves all layers: what a window hides beyond it is not the caller's.
func PrefillOf(p *chunking.Plan, n int) (*Function, error) {
	if n < 2 || n > p.Context {
		return nil, &format.Error{Field: "prefill", Got: fmt.Sprintf("%d tokens", n), Want: fmt.Sprintf("2 to the context, %d", p.Context), Fix: "one token is what decode takes"}
	}
	f, wide, err := widened(p, n)
	if err != nil {
		return nil, err
	}
	f.Name, f.Kind = fmt.Sprintf("prefill_b%d", n), Prefill
	for i, c := range wide.Chunks {
		f.Chunks = append(f.Chunks, Signature{f.prefillInputs(p, c), f.prefillOutputs(p, i, c)})
	}
	return f, nil
}

// prefillInputs puts the one mask where the masks of decode are. Donors' rows are those of the batch, whatever is kept of them.
func (f *Function) prefillInputs(p *chunking.Plan, c *chunking.Chunk) []chunking.Port {
	var ports []chunking.Port
	masked := false
	for _, port := range c.Inputs {
		switch port.Role {
		case chunking.RoleMask, chunking.RoleUpdate:
			if !masked {
				ports = append(ports, chunking.Port{Name: "causal_mask", Role: chunking.RoleMask, Shape: []int{1, 1, f.Tokens, f.Tokens}})
			}
			masked = true
		case chunking.RoleCache:
		case chunking.RoleHandoff:
			port = sized(port, 2, f.Tokens)
			port.Name = donorName[p.Model.Layers[port.Layers[0]].Kind] + map[bool]string{false: "_k", true: "_v"}[HoldsValues(port)]
			ports = append(ports, port)
		default:
			ports = append(ports, port)
		}
	}
	if c.Head {
		ports = append(ports, chunking.Port{Name: "last_position_mask", Role: chunking.RoleMask, Shape: []int{1, f.Tokens, 1}})
	}
	return ports
}

// prefillOutputs names keys and values by the owner's place among the chunk's owners, donors apart: those travel as kv13 and
// kv14, also where no later chunk reads them, because the host fills caches from them.
func (f *Function) prefillOutputs(p *chunking.Plan, i int, c *chunking.Chunk) []chunking.Port {
	var ports, handoffs []chunking.Port
	if c.Head {
		for _, port := range p.Chunks[i].Outputs {
			if port.Role == chunking.RoleToken {
				ports = append(ports, port)
			}
		}
	}
	for _, port := range c.Outputs {
		if port.Role == chunking.RoleHidden && !c.Head || port.Role == chunking.RolePLE {
			ports = append(ports, port)
		}
	}
	next := 0
	for _, y := range p.Model.Layers[c.Lo:c.Hi] {
		shape := []int{1, y.KVHeads, f.Tokens, y.HeadDim}
		switch {
		case !y.OwnsKV():
		case isDonor(p.Model.Layers, y.Index):
			handoffs = append(handoffs, keyAndValue(donorName[y.Kind]+"_k", donorName[y.Kind]+"_v", chunking.Port{Role: chunking.RoleHandoff, Shape: shape, Layers: []int{y.Index}})...)
		default:
			ports = append(ports, keyAndValue(fmt.Sprintf("K%d", next), fmt.Sprintf("V%d", next), chunking.Port{Role: chunking.RoleCache, Shape: shape, Layers: []int{y.Index}})...)
			next++
		}
	}
	return append(ports, handoffs...)
}

// isDonor reports whether another layer reads the keys and values of l.
func isDonor(layers []gemma4.Layer, l int) bool {
	for i, y := range layers {
		if y.KVSource == l && i != l {
			return true
		}
	}
	return false
}

func keyAndValue(k, v string, p chunking.Port) []chunking.Port {
	both := []chunking.Port{p, p}
	both[0].Name, both[1].Name = k, v
	return both
}
