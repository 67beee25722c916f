package interp

import (
	"strconv"

	"anelab/coreml/mil"
	"anelab/internal/arith"
	"anelab/internal/format"
)

// Precision says how the results of ops are rounded.
type Precision uint8

// The precisions; the package comment says what they mean.
const (
	Exact Precision = iota
	FP16
	ANE
	Fast
)

var precisions = [...]struct {
	name string
	mode arith.GraphMode
}{
	Exact: {"exact", arith.GraphExact}, FP16: {"fp16", arith.GraphFP16}, ANE: {"ane", arith.GraphANE}, Fast: {"fast", arith.GraphFast},
}

// String is the name on command lines.
func (p Precision) String() string {
	if int(p) < len(precisions) {
		return precisions[p].name
	}
	return "precision " + strconv.Itoa(int(p))
}

// ParsePrecision finds a precision by its name.
func ParsePrecision(name string) (Precision, error) {
	var names []string
	for i, p := range precisions {
		if p.name == name {
			return Precision(i), nil
		}
		names = append(names, p.name)
	}
	return 0, &format.Error{Field: "precision", Got: strconv.Quote(name), Want: "exact, fp16, ane or fast", Fix: format.DidYouMean(name, names)}
}

// numerics is the arithmetic for each element type.
type numerics struct {
	narrow *arith.Graph // results of type fp16
	wide   *arith.Graph // results of the other floating types
}

func newNumerics(p Precision, threads int) numerics {
	n := numerics{narrow: arith.NewGraph(precisions[p].mode, threads)}
	n.wide = n.narrow
	if p == FP16 || p == ANE {
		n.wide = arith.NewGraph(arith.GraphExact, threads)
	}
	return n
}

// of is the arithmetic for results of an element type.
func (n numerics) of(d mil.DType) *arith.Graph {
	if d == mil.Float16 {
		return n.narrow
	}
	return n.wide
}
