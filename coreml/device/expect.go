package device

import (
	"math"
	"slices"

	"anelab/coreml/mil"
)

// Case is a call with known inputs, and what is expected of it.
type Case struct {
	Name     string
	Function string
	Inputs   map[string]*Tensor
	Start    Start
	State    map[string]*Tensor  // of cases that start with a given state
	Want     map[string]Expected // outputs, and states after the call
}

// Start is the state in which a case begins.
type Start uint8

// Zeros is a new state, Carried the state that the case before has left, Given that of [Case.State].
const (
	Zeros Start = iota
	Carried
	Given
)

// Expected is an output and how far the device may be from it: each element within Atol + Rtol·|want|, and the whole within RelRMS.
// Limits that are zero are not asked about; without any, the output must be equal.
type Expected struct {
	*Tensor
	Atol, Rtol, RelRMS float64
}

// judge compares an output with what is expected. Recorded floats are often wider than the output; tensors of another shape have
// nothing in common.
func (e Expected) judge(got *Tensor) *ReportDeviation {
	d := &ReportDeviation{}
	if got.DType.IsFloat() != e.DType.IsFloat() || !slices.Equal(got.Shape, e.Shape) {
		d.NonFinite = count(e.Shape)
		return d
	}
	var square, apart float64
	d.Within = true
	for i := range count(e.Shape) {
		g, w := got.at(i), e.at(i)
		if finite := !math.IsInf(g, 0) && !math.IsNaN(g); !finite || math.IsInf(w, 0) || math.IsNaN(w) {
			if g != w && !(math.IsNaN(g) && math.IsNaN(w)) {
				d.NonFinite++
			}
			continue
		}
		off := math.Abs(g - w)
		d.MaxAbs, square, apart = max(d.MaxAbs, off), square+w*w, apart+off*off
		if (e.Atol > 0 || e.Rtol > 0 || e.RelRMS == 0) && off > e.Atol+e.Rtol*math.Abs(w) {
			d.Within = false
		}
	}
	if apart > 0 {
		d.RelRMS = math.Sqrt(apart / max(square, 1e-300))
	}
	d.Within = d.Within && d.NonFinite == 0 && (e.RelRMS == 0 || d.RelRMS <= e.RelRMS)
	return d
}

// at is an element as a number.
func (t *Tensor) at(i int) float64 {
	if t.DType.IsFloat() {
		return float64(t.Floats[i])
	}
	return float64(t.Ints[i])
}

// Filler is inputs for timing that anybody can make again: element i of the port with index k of the sorted names is
// ((37·i + 11·k) mod 101 − 50) / 128, integers are 0, masks are 0 except for a 1 at the start of an update mask.
func Filler(ports []Port) map[string]*Tensor {
	inputs := map[string]*Tensor{}
	for k, p := range ports {
		t := NewTensor(p.DType, p.Shape...)
		switch {
		case p.DType == mil.Int32 || p.DType == mil.Int8 || len(t.Floats) == 0:
		case isUpdateMask(p.Name):
			t.Floats[0] = 1
		case !isMask(p.Name):
			for i := range t.Floats {
				t.Floats[i] = float32((37*i+11*k)%101-50) / 128
			}
		}
		inputs[p.Name] = t
	}
	return inputs
}
