package converted

import (
	"errors"
	"strconv"

	"anelab/coreml/mil"
	"anelab/internal/format"
)

// ErrContexts says that chunks of a chain, or ports of a chunk, were built for different numbers of positions.
var ErrContexts = errors.New("built for another context")

// Context is the number of positions that a decode function was built for: the width of its mask. 0 if it has no such mask.
func Context(f *mil.Function) int64 {
	in := f.Input("causal_mask_full")
	if in == nil || len(in.Type.Shape) == 0 {
		return 0
	}
	return in.Type.Shape[len(in.Type.Shape)-1]
}

// rowsOf are the ports whose rows are positions, with the axis that counts them.
var rowsOf = map[string]int{"K_full_in": 2, "V_full_in": 2, "update_mask": 2, "update_indicator": 2, "kv14_k": 2, "kv14_v": 2}

// CheckContexts refuses programs that cannot be one model: every decode function must have been built for the same number of
// positions, its caches included. An interrupted download leaves such a mixture behind, and a runtime that takes the least or the
// greatest fails much later, or not at all.
func CheckContexts(programs ...*Program) error {
	first, firstAt := int64(0), ""
	for _, p := range programs {
		for _, f := range p.Functions {
			n := Context(f)
			if n <= 0 {
				continue
			}
			at := p.Path + ", " + f.Name
			if first == 0 {
				first, firstAt = n, at
			}
			if n != first {
				return contextError(p, f.Name+"/causal_mask_full", n, strconv.FormatInt(first, 10)+" as "+firstAt)
			}
			if err := checkPorts(p, f, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkPorts holds the ports of one function against its mask.
func checkPorts(p *Program, f *mil.Function, n int64) error {
	for _, in := range f.Inputs {
		axis, ok := rowsOf[in.Name]
		if t, isTensor := in.Type.AsTensor(); ok && isTensor && axis < len(t.Shape) && t.Shape[axis] != n {
			return contextError(p, f.Name+"/"+in.Name, t.Shape[axis], strconv.FormatInt(n, 10)+" as its causal_mask_full")
		}
	}
	return nil
}

func contextError(p *Program, field string, got int64, want string) error {
	return &format.Error{Path: p.Path, Field: field, Got: strconv.FormatInt(got, 10) + " positions", Want: want, Err: ErrContexts,
		Fix: "take all chunks from one conversion; was a download interrupted?"}
}
