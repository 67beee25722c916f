package attention

import (
	"fmt"

	"anelab/swa"
)

var _ = register("wfa", "wfa:2048", func(_, arg string) (Policy, error) {
	w, err := number(arg, 1)
	return WFA{w}, err
})

// WFA, windowed full attention, gives a full layer a window of the last Window positions, itself included (spec forward.md §4.8).
// It is exact below position Window. It differs from Sliding in name only: a layout says which layers were meant to be full.
type WFA struct{ Window int }

func (w WFA) String() string { return fmt.Sprintf("wfa:%d", w.Window) }

// Groups is all heads.
func (WFA) Groups(heads int) []HeadGroup { return []HeadGroup{{0, heads}} }

// Visible is pos−W+1 … pos.
func (w WFA) Visible(dst []swa.Span, _ int, pos int) []swa.Span {
	return append(dst, swa.Span{Lo: max(pos-w.Window+1, 0), Hi: pos + 1})
}

// Keep is the last W rows.
func (w WFA) Keep() swa.Retention { return swa.Last(w.Window) }
