package interp

import "slices"

// ops is every op type that can be run. To add one, add it to the table of its family.
var ops map[string]impl

func init() {
	ops = map[string]impl{}
	for _, f := range []family{
		unary, binaryOps, choosing, casting, shapes, joining, filling, slicing, gathering, scattering, reductions, ordering, norms, products,
		convolutions, stateful, compressed,
	} {
		for name, f := range f {
			ops[name] = f
		}
	}
}

// Supported are the op types that can be run, sorted; const is understood too.
func Supported() []string {
	var names []string
	for name := range ops {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
