package place

import (
	"fmt"

	"anelab/coreml/mil"
	"anelab/internal/format"
)

// Record is what a compiler wrote beside one op.
type Record struct {
	Op       *mil.Op
	Seconds  Seconds
	Selected Backend
	Refusals map[string]string // ValidationMessage: why a backend does not take the op
}

// Recorded reads the placement that a text records: estimates, choices, refusals, and what paths pay. ok is false for functions
// without one. Ops at the ports have no estimates of their own and cost nothing anywhere.
func Recorded(f *mil.Function) (all []Record, c Costs, ok bool, err error) {
	for op := range f.Body.All() {
		selected := op.Attribute("SelectedBackend")
		if selected == nil {
			continue
		}
		r := Record{Op: op, Refusals: texts(op.Attribute("ValidationMessage"))}
		name, _ := selected.Text()
		known := false
		for b := ANE; b < backends; b++ {
			if b.String() == name {
				r.Selected, known = b, true
			}
		}
		if !known {
			return nil, c, false, &format.Error{Field: f.Name + "/" + op.Name(), Got: fmt.Sprintf("SelectedBackend %q", name), Want: "ane, bnns or classic_cpu"}
		}
		r.Seconds = estimates(op.Attribute("EstimatedRuntime"))
		all = append(all, r)
	}
	c = Costs{milliseconds(f, "Launch_ane_ms"), milliseconds(f, "Src_bnns_Dest_ane_ms"), milliseconds(f, "Src_ane_Dest_bnns_ms")}
	return all, c, len(all) > 0, nil
}

// estimates reads a dictionary of milliseconds by backend.
func estimates(v *mil.Value) Seconds {
	var s Seconds
	if v == nil {
		return s
	}
	for b := range s {
		s[b] = refused
	}
	pairs, _ := v.Content.(mil.Pairs)
	for _, p := range pairs {
		name, _ := p.Key.Text()
		ms, ok := p.Value.Float()
		for b := ANE; b < backends && ok; b++ {
			if b.String() == name {
				s[b] = ms * 1e-3
			}
		}
	}
	return s
}

// texts reads a dictionary of strings.
func texts(v *mil.Value) map[string]string {
	all := map[string]string{}
	if v == nil {
		return all
	}
	pairs, _ := v.Content.(mil.Pairs)
	for _, p := range pairs {
		key, _ := p.Key.Text()
		all[key], _ = p.Value.Text()
	}
	return all
}

// milliseconds reads a cost that the function records, or the usual one.
func milliseconds(f *mil.Function, name string) float64 {
	if v := f.Attribute(name); v != nil {
		if ms, ok := v.Float(); ok {
			return ms * 1e-3
		}
	}
	return DefaultCosts.ChangeSeconds
}
