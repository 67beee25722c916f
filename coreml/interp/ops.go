package interp

import (
	"maps"
	"slices"
)

// ops is every op type that can be run. To add one, add it to the table of its family.
var ops = func() family {
	all := family{}
	for _, f := range []family{
		unary, binaryOps, choosing, casting, shapes, joining, filling, slicing, gathering, scattering, reductions, ordering, norms, products,
		convolutions, stateful, compressed,
	} {
		maps.Copy(all, f)
	}
	return all
}()

// Supported are the op types that can be run, sorted; const is understood too.
func Supported() []string { return slices.Sorted(maps.Keys(ops)) }
