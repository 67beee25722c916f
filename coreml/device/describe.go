package device

import (
	"math/bits"
	"strings"

	"anelab/coreml/mil"
)

// What a report says of the models is read off their programs and ports.

func isMask(name string) bool       { return strings.Contains(name, "mask") }
func isUpdateMask(name string) bool { return strings.Contains(name, "update_mask") }

// describe fills in the context and the form of most weights.
func (r *Report) describe(benches []*bench) {
	forms := map[[2]int]int64{} // bits and group size → elements
	for _, b := range benches {
		inputs, _, _, err := b.model.Ports(b.function)
		if err != nil {
			continue
		}
		for _, p := range inputs {
			if isMask(p.Name) && !isUpdateMask(p.Name) && len(p.Shape) > 0 {
				r.Context = max(r.Context, p.Shape[len(p.Shape)-1])
			}
		}
		if b.model.Package != nil {
			for _, f := range b.model.Package.Program.Functions {
				for _, op := range f.Body.Ops {
					form, elements := weightForm(op)
					forms[form] += elements
				}
			}
		}
	}
	var most int64
	for form, elements := range forms {
		if elements > most {
			most, r.WeightBits, r.GroupSize = elements, form[0], form[1]
		}
	}
}

// weightForm is how an op holds a weight: bits of an element, rows that share a palette or scale, and how many elements there are.
func weightForm(op *mil.Op) (form [2]int, elements int64) {
	values := map[string]*mil.Value{}
	for param, v := range op.Values() {
		values[param] = v
	}
	v := values["val"]
	switch op.Type {
	case "const":
	case "constexpr_lut_to_dense":
		v = values["indices"]
	default:
		for _, param := range []string{"data", "quantized_data", "nonzero_data"} {
			if values[param] != nil && op.IsConstexpr() {
				v = values[param]
			}
		}
	}
	if v == nil || v.Blob() == nil {
		return form, 0
	}
	n, _ := v.Type.Count()
	form[0] = v.Type.DType.Bits()
	lut := values["lut"]
	switch {
	case lut == nil:
	case len(lut.Type.Shape) == len(v.Type.Shape)+2 && lut.Type.Shape[0] > 0:
		form[1] = int(v.Type.Shape[0] / lut.Type.Shape[0])
	case len(lut.Type.Shape) == 1: // before specification version 9 indices are packed into bytes
		form[0] = bits.Len64(uint64(lut.Type.Shape[0] - 1))
		n, _ = op.Outputs[0].Type.Count()
	}
	return form, n
}

// weightBytes is what the program has in its weights files; functions may share it.
func weightBytes(m *Model) int64 {
	if m.Package == nil {
		return 0
	}
	seen, sum := map[mil.Blob]bool{}, int64(0)
	for _, f := range m.Package.Program.Functions {
		for _, op := range f.Body.Ops {
			for _, v := range op.Values() {
				b := v.Blob()
				if b == nil {
					continue
				}
				if key := (mil.Blob{File: b.File, Offset: b.Offset}); !seen[key] {
					seen[key] = true
					n, _ := v.Type.ByteSize()
					sum += n
				}
			}
		}
	}
	return sum
}
