package parity

import (
	"cmp"
	"fmt"
	"slices"

	"anelab/gemma4"
)

// Tap is one named tensor of a forward pass, the language all backends speak.
type Tap = gemma4.Tap

// Points is the closed list of points, in the order of a pass.
var Points = []gemma4.Point{
	gemma4.PointRopeCosSliding, gemma4.PointRopeSinSliding, gemma4.PointRopeCosFull, gemma4.PointRopeSinFull,
	gemma4.PointEmbeds, gemma4.PointPLE,
	gemma4.PointQ, gemma4.PointK, gemma4.PointV, gemma4.PointProbs, gemma4.PointAttnOut, gemma4.PointFFNOut, gemma4.PointPLEOut, gemma4.PointHidden,
	gemma4.PointFinalNorm, gemma4.PointLogitsPre, gemma4.PointLogits,
}

// Label names a tap as the goldens do, "hidden.3", and adds its positions: "hidden.3 [0,21)".
func Label(t Tap) string {
	name := string(t.Point)
	if t.Layer >= 0 {
		name = fmt.Sprintf("%s.%d", name, t.Layer)
	}
	return fmt.Sprintf("%s [%d,%d)", name, t.First, end(t))
}

// rowAxis is the axis of a tap that counts positions.
func rowAxis(p gemma4.Point) int {
	if p == gemma4.PointProbs {
		return 1 // [H, T, positions]
	}
	return 0
}

// end is the position after the last one of a tap. All taps of one call have the same end, whatever their first row.
func end(t Tap) int { return t.First + t.Shape[rowAxis(t.Point)] }

// place orders taps: by call, then by stage of the pass, then by layer, then by point.
type place struct{ end, stage, layer, point int }

func placeOf(t Tap) (place, error) {
	i := slices.Index(Points, t.Point)
	switch {
	case i < 0:
		return place{}, fmt.Errorf("unknown point %q", t.Point)
	case len(t.Shape) <= rowAxis(t.Point):
		return place{}, fmt.Errorf("%s has shape %v", t.Point, t.Shape)
	}
	stage := 1
	switch {
	case i < slices.Index(Points, gemma4.PointQ):
		stage = 0
	case i > slices.Index(Points, gemma4.PointHidden):
		stage = 2
	}
	if (stage == 1) != (t.Layer >= 0) {
		return place{}, fmt.Errorf("%s in layer %d", t.Point, t.Layer)
	}
	return place{end(t), stage, t.Layer, i}, nil
}

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.end, o.end), cmp.Compare(p.stage, o.stage), cmp.Compare(p.layer, o.layer), cmp.Compare(p.point, o.point))
}

// LastRows returns the part of a tap that holds its last n positions. It shares the data.
func LastRows(t Tap, n int) Tap {
	axis := rowAxis(t.Point)
	if axis != 0 || n >= t.Shape[0] {
		return t
	}
	drop := t.Shape[0] - n
	width := len(t.Data) / t.Shape[0]
	t.First += drop
	t.Data = t.Data[drop*width:]
	t.Shape = slices.Clone(t.Shape)
	t.Shape[0] = n
	return t
}
