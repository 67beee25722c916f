package coreml

import (
	"errors"
	"slices"
	"strconv"

	"anelab/coreml/mil"
	"anelab/internal/format"
)

// ErrContexts says that chunks of a chain, or ports of a chunk, were built for different numbers of positions.
var ErrContexts = errors.New("built for another context")

// Context is the number of positions that a function over a cache was built for: the width of its mask. 0 if it has no such mask.
func Context(f *mil.Function) int64 {
	in := f.Input("causal_mask_full")
	if in == nil || len(in.Type.Shape) == 0 {
		return 0
	}
	return in.Type.Shape[len(in.Type.Shape)-1]
}

// positionAxis is the axis that counts positions in every port that has one.
const positionAxis = 2

// rowsOf are the ports whose rows are positions.
var rowsOf = []string{"K_full_in", "V_full_in", "kv_cache_full", "kv_cache_unified", "update_mask", "update_indicator", "kv14_k", "kv14_v"}

// CheckContexts refuses models that cannot be the chunks of one: every function over a cache must have been built for the same number
// of positions, its caches included. An interrupted download leaves such a mixture behind, and a runtime that takes the least or the
// greatest fails much later, or not at all. want is that number as origin, a file, says it; 0 takes the first model's.
func CheckContexts(want int64, origin string, models ...*Model) error {
	for _, p := range models {
		for _, f := range p.Functions {
			n := Context(f)
			if n <= 0 {
				continue
			}
			if want == 0 {
				want, origin = n, p.Path+", "+f.Name
			}
			if n != want {
				return contextError(p, f.Name+"/causal_mask_full", n, strconv.FormatInt(want, 10)+" as "+origin)
			}
			if err := checkPorts(p, f, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkPorts holds the ports of one function against its mask.
func checkPorts(p *Model, f *mil.Function, n int64) error {
	for _, in := range f.Inputs {
		t, isTensor := in.Type.AsTensor()
		if !isTensor || len(t.Shape) <= positionAxis || !slices.Contains(rowsOf, in.Name) {
			continue
		}
		if rows := t.Shape[positionAxis]; rows != n {
			return contextError(p, f.Name+"/"+in.Name, rows, strconv.FormatInt(n, 10)+" as its causal_mask_full")
		}
	}
	return nil
}

func contextError(p *Model, field string, got int64, want string) error {
	return &format.Error{Path: p.Path, Field: field, Got: strconv.FormatInt(got, 10) + " positions", Want: want, Err: ErrContexts,
		Fix: "take all chunks from one conversion; was a download interrupted?"}
}
