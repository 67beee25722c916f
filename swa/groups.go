package swa

import (
	"math"

	"anelab/internal/half"
)

// Grouped keeps the newest positions exactly and older ones as small integers (KIVI): a key channel shares scale and offset over
// a group of positions, because some key channels are large everywhere; a value row has them per group of its channels. A group
// is closed once all of it is older than the newest Recent positions. Which positions are still exact depends on the query, so
// a prompt fed at once and fed token by token see the same.
//
// Here a code takes a byte; [Form.HeadBytes] counts them packed.
type Grouped struct {
	Ring
	form         Form
	keys, values *grouped
}

// NewGrouped allocates a store for context rows.
func NewGrouped(s Shape, context int) *Grouped {
	f := s.Form
	exact := s
	exact.Form = Form{}
	return &Grouped{Ring: *NewRing(exact, min(f.Recent+f.Group, context)), form: f, // a context that short never closes a group
		keys:   newGrouped(s, context, f.Group, 1),
		values: newGrouped(s, context, 1, min(f.Group, s.HeadDim))}
}

// Stage keeps the rows, and closes the groups that the last of them closes.
func (s *Grouped) Stage(first int, k, v []float32) {
	s.Ring.Stage(first, k, v)
	last := first + len(k)/s.shape.Width() - 1
	kv, vv := s.Ring.Keys(), s.Ring.Values()
	for p := s.keys.closed(first - 1); p < s.keys.closed(last); p += s.form.Group {
		s.keys.encode(kv, p, s.form.Group)
		s.values.encode(vv, p, s.form.Group)
	}
}

// Keys views closed groups, exact rows and staged rows; see [View.At].
func (s *Grouped) Keys() View { return s.with(s.Ring.Keys(), s.keys) }

// Values views closed groups, exact rows and staged rows; see [View.At].
func (s *Grouped) Values() View { return s.with(s.Ring.Values(), s.values) }

func (s *Grouped) with(v View, g *grouped) View {
	v.groups = g
	return v
}

// Held is every committed position until the sequence is truncated.
func (s *Grouped) Held() Span { return Span{0, s.next} }

// resumable wants the exact rows of the group that p is in.
func (s *Grouped) resumable(p int) error {
	exact := s.Ring.Held()
	if p > s.next || p < 0 || (p < s.next && s.keys.closed(p-1) < min(p, exact.Lo)) {
		return &ErrWindowMoved{p, exact}
	}
	return nil
}

// Truncate forgets the rows from position p on, where the rows needed to go on are there.
func (s *Grouped) Truncate(p int) error {
	if err := s.resumable(p); err != nil {
		return err
	}
	s.cut(p)
	return nil
}

// grouped is the keys, or the values, of closed groups.
type grouped struct {
	shape       Shape
	perPosition int       // positions that share a scale: Group for keys, 1 for values
	channels    int       // that share a scale: 1 for keys, Group for values
	blocks      int       // scales of one head over perPosition positions
	codes       []uint8   // [C, K, d]
	scale, zero []float32 // one per block of perPosition × channels, representable in fp16
}

func newGrouped(s Shape, context, perPosition, channels int) *grouped {
	blocks := (s.HeadDim + channels - 1) / channels
	n := (context + perPosition - 1) / perPosition * s.KVHeads * blocks
	return &grouped{shape: s, perPosition: perPosition, channels: channels, blocks: blocks,
		codes: make([]uint8, context*s.Width()), scale: make([]float32, n), zero: make([]float32, n)}
}

// closed is how many positions a query at pos reads in groups.
func (g *grouped) closed(pos int) int {
	f := g.shape.Form
	return max(pos+1-f.Recent, 0) / f.Group * f.Group
}

// encode closes the group of n positions from p on.
func (g *grouped) encode(v View, p, n int) {
	d := g.shape.HeadDim
	rows := make([]float32, n*d)
	for head := range g.shape.KVHeads {
		v.Head(head).Load(rows, p, n)
		for from := 0; from < n; from += g.perPosition {
			for c := 0; c < d; c += g.channels {
				g.block(rows[from*d:(from+g.perPosition)*d], p+from, head, c)
			}
		}
	}
}

// at is the index of the scale of position p, channel c.
func (g *grouped) at(p, head, c int) int {
	return (p/g.perPosition*g.shape.KVHeads+head)*g.blocks + c/g.channels
}

// block encodes the channels from c on that share a scale, over rows [perPosition, d] from position p on.
func (g *grouped) block(rows []float32, p, head, c int) {
	d, hi := g.shape.HeadDim, min(c+g.channels, g.shape.HeadDim)
	least, most := float32(math.Inf(1)), float32(math.Inf(-1))
	for i := 0; i < len(rows); i += d {
		for _, v := range rows[i+c : i+hi] {
			least, most = min(least, v), max(most, v)
		}
	}
	levels := float32(int(1)<<g.shape.Form.Bits - 1)
	zero, scale := half.RoundF16(least), half.RoundF16((most-least)/levels)
	at := g.at(p, head, c)
	g.scale[at], g.zero[at] = scale, zero
	for i := 0; i < len(rows); i += d {
		codes := g.codes[(p+i/d)*g.shape.Width()+head*d:]
		for k := c; k < hi; k++ {
			codes[k] = toCode(rows[i+k]-zero, scale, levels)
		}
	}
}

// toCode is x in units of scale, to the nearest and within the levels.
func toCode(x, scale, levels float32) uint8 {
	if scale == 0 {
		return 0
	}
	return uint8(max(0, min(float64(levels), math.RoundToEven(float64(x)/float64(scale)))))
}

// get reads columns [column, column+len(dst)) of the row of position p.
func (g *grouped) get(dst []float32, p, head, column int) {
	codes := g.codes[p*g.shape.Width()+head*g.shape.HeadDim+column:]
	for i := range dst {
		at := g.at(p, head, column+i)
		dst[i] = float32(float32(codes[i])*g.scale[at]) + g.zero[at]
	}
	g.shape.Elem.round(dst)
}
