package chunking

import (
	"fmt"
	"strconv"
	"strings"

	"anelab/quant"
)

// Layout is what a person asks for. The zero values mean: int4g32 weights, explicit KV I/O, one query token.
type Layout struct {
	Cuts        []Cut       // in layer order, covering every layer once
	Context     int         // C, compiled into the chunks; 0 = 2048
	QueryTokens int         // T per call; 0 = 1 (decode); more plans the verify graph (spec forward.md §4.10)
	KVMode      KVMode      //
	Attn        []LayerAttn // per-layer attention policies that differ from the model's own
}

// Cut is one chunk as asked for.
type Cut struct {
	Lo, Hi  int            // layers [Lo, Hi); both the number of layers for a chunk that is only the head
	Head    bool           // final norm, LM head, soft-cap and argmax belong to it
	Weights quant.Encoding // of its linears; zero = int4g32
}

// KVMode says how keys and values reach a chunk.
type KVMode uint8

// Only explicit I/O is planned so far: caches are inputs and outputs of every call (spec forward.md §4.1).
const (
	ExplicitIO KVMode = iota
)

// LayerAttn replaces the attention policy of one layer, or of all full layers (Layer −1), by its text form (spec design.md D3).
type LayerAttn struct {
	Layer  int
	Policy string
}

// allFull as the layer of a [LayerAttn] means every full layer without a policy of its own.
const allFull = -1

// What the zero values of a layout stand for, and how far the others may go.
const (
	DefaultContext     = 2048
	DefaultQueryTokens = 1

	maxContext     = 1 << 20
	maxQueryTokens = 1 << 12
)

// String is the layout as text; [Parse] reads it back to the same value. Defaults are left out.
func (l Layout) String() string {
	var b strings.Builder
	for i, c := range l.Cuts {
		if i > 0 {
			b.WriteString(" | ")
		}
		b.WriteString(c.String())
	}
	for _, a := range l.Attn {
		if a.Layer >= 0 {
			fmt.Fprintf(&b, " @%d", a.Layer)
		}
		b.WriteString(" attn=" + a.Policy)
	}
	if l.Context != 0 {
		fmt.Fprintf(&b, " context=%d", l.Context)
	}
	if l.QueryTokens != 0 {
		fmt.Fprintf(&b, " tokens=%d", l.QueryTokens)
	}
	return b.String()
}

// String is the chunk as layout text: "L0-7 w=f16", "L4", "L25-34+head", "head".
func (c Cut) String() string {
	var b strings.Builder
	switch c.Hi - c.Lo {
	case 0:
	case 1:
		b.WriteString("L" + strconv.Itoa(c.Lo))
	default:
		fmt.Fprintf(&b, "L%d-%d", c.Lo, c.Hi-1)
	}
	if c.Head && c.Hi > c.Lo {
		b.WriteByte('+')
	}
	if c.Head {
		b.WriteString("head")
	}
	if c.Weights != (quant.Encoding{}) {
		b.WriteString(" w=" + c.Weights.String())
	}
	return b.String()
}

// weights resolves the zero value.
func (c Cut) weights() quant.Encoding {
	if c.Weights == (quant.Encoding{}) {
		return quant.Int4G32
	}
	return c.Weights
}

// orDefault replaces the zero value of a setting.
func orDefault(v, def int) int {
	if v == 0 {
		return def
	}
	return v
}
