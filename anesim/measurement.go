package anesim

import (
	"fmt"
	"strconv"
	"strings"

	"anelab/chunking"
)

// Measurement is one timed part of one session: a line of a measurements file. Empty columns are zero.
type Measurement struct {
	Line        int // in its file, 1 = header
	Experiment  string
	SessionDate string
	Source      string
	Device      string
	SoC         string
	OS          string
	Model       string
	KVMode      string // "explicit-io", "mlstate-dual", "mlstate-unified", "none"
	Layout      string // "0-7|8-14|15-24|25-34+head"
	Context     int
	QueryTokens int
	RealTokens  int
	WeightBits  int
	GroupSize   int
	Component   string // chunk number, or "step", "emb", "mask", "copyback", "host", "prefill-total"
	Lo, Hi      int    // layers [Lo, Hi) that the component covers; both 0 when it covers none
	HasPLE      bool
	HasHead     bool
	Seconds     float64 // 0 when only a rate was printed
	Timed       bool    // a time was printed, zero included
	TokPerSec   float64 // 0 when only a time was printed
	ColdWarm    string  // "warm", "cold" or unknown
	Quality     string  // A, B or X (data README)
	CrossCheck  string
	Note        string
}

// CopyBack reads where the session's build copied the caches: "copyback=sync; …" at the start of the note. The second
// result is false when the note does not say.
func (m Measurement) CopyBack() (CopyBack, bool) {
	v, ok := strings.CutPrefix(m.Note, "copyback=")
	if !ok {
		return "", false
	}
	v, _, _ = strings.Cut(v, ";")
	switch c := CopyBack(strings.TrimSpace(v)); c {
	case CopyBackSync, CopyBackAsync, CopyBackNone:
		return c, true
	}
	return "", false
}

// chunkNumber is the component as a chunk number, 0 if it is not one.
func (m Measurement) chunkNumber() int {
	n, err := strconv.Atoi(m.Component)
	if err != nil || n < 1 {
		return 0
	}
	return n
}

// chunks is how many chunks the layout has.
func (m Measurement) chunks() int { return strings.Count(m.Layout, "|") + 1 }

// weights is the text form of the encoding of the linears; "" when the file does not say.
func (m Measurement) weights() string {
	switch {
	case m.WeightBits == 0:
		return ""
	case m.WeightBits == 16:
		return "f16"
	case m.GroupSize == 0:
		return fmt.Sprintf("int%d", m.WeightBits)
	}
	return fmt.Sprintf("int%dg%d", m.WeightBits, m.GroupSize)
}

// layout turns the columns of a row into the layout that was run: "0-7|8-34+head" at 4 bits in groups of 32 becomes
// "L0-7 w=int4g32 | L8-34+head w=int4g32".
func (m Measurement) layout(model *chunking.Model) (chunking.Layout, error) {
	parts := strings.Split(m.Layout, "|")
	for i, p := range parts {
		if p != "head" {
			p = "L" + p
		}
		if w := m.weights(); w != "" {
			p += " w=" + w
		}
		parts[i] = p
	}
	l, err := chunking.Parse(strings.Join(parts, " | "), model)
	l.Context, l.QueryTokens = m.Context, m.QueryTokens
	return l, err
}

// where names the row for messages.
func (m Measurement) where() string { return fmt.Sprintf("line %d (%s)", m.Line, m.Experiment) }
