package spec

import "anelab/coreml/mil"

// EncodeDescription writes a ModelDescription by itself.
func EncodeDescription(d *mil.Description) []byte {
	e := &encoder{}
	e.description(d)
	return e.buf
}

func (e *encoder) description(d *mil.Description) {
	e.features(1, d.Inputs)
	e.features(10, d.Outputs)
	e.text(11, d.PredictedFeature)
	e.text(12, d.PredictedProbs)
	e.features(13, d.States)
	for i := range d.Functions {
		e.nest(20, func() { e.functionDescription(&d.Functions[i]) })
	}
	e.text(21, d.DefaultFunction)
	e.features(50, d.TrainingInputs)
	if m := &d.Metadata; m.Doc+m.Version+m.Author+m.License != "" || len(m.UserDefined) > 0 || e.kept.has(m) {
		e.nest(100, func() { e.metadata(m) })
	}
	e.raw(d)
}

func (e *encoder) functionDescription(f *mil.FunctionDescription) {
	e.text(1, f.Name)
	e.features(2, f.Inputs)
	e.features(3, f.Outputs)
	e.text(4, f.PredictedFeature)
	e.text(5, f.PredictedProbs)
	e.features(6, f.States)
	e.raw(f)
}

func (e *encoder) features(num int, list []mil.Feature) {
	for i := range list {
		f := &list[i]
		e.nest(num, func() {
			e.text(1, f.Name)
			e.text(2, f.Doc)
			e.nest(3, func() { e.featureType(f) })
			e.raw(f)
		})
	}
}

func (e *encoder) featureType(f *mil.Feature) {
	e.buf = append(e.buf, f.Other...)
	switch f.Kind {
	case mil.ArrayPort:
		e.nest(5, func() { e.array(f.Array) })
	case mil.StatePort:
		e.nest(8, func() { e.nest(1, func() { e.array(f.Array) }) })
	}
	if f.Optional {
		e.integer(1000, 1)
	}
}

func (e *encoder) array(a *mil.ArrayFeature) {
	e.packed(1, a.Shape)
	for n, d := range arrayTypes {
		if d == a.DType {
			e.integer(2, n)
		}
	}
	if a.Flexible != nil {
		e.flexible(a.Flexible)
	}
	e.raw(a)
}

func (e *encoder) flexible(f *mil.Flexible) {
	switch {
	case e.kept.has(f):
		e.raw(f)
	case f.Ranges != nil:
		e.nest(31, func() {
			for _, r := range f.Ranges {
				e.nest(1, func() {
					e.integer(1, r.Min)
					e.integer(2, r.Max)
				})
			}
		})
	default:
		e.nest(21, func() {
			for _, shape := range f.Enumerated {
				e.nest(1, func() { e.packed(1, shape) })
			}
		})
	}
}

func (e *encoder) metadata(m *mil.Metadata) {
	e.text(1, m.Doc)
	e.text(2, m.Version)
	e.text(3, m.Author)
	e.text(4, m.License)
	for _, u := range m.UserDefined {
		e.nest(100, func() {
			e.text(1, u.Key)
			e.text(2, u.Value)
		})
	}
	e.raw(m)
}
