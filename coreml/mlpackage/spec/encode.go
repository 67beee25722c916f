package spec

import "anelab/coreml/mil"

func (e *encoder) program(p *mil.Program) {
	e.integer(1, 1)
	for _, f := range p.Functions {
		e.entry(2, f.Name, func() { e.function(f) })
	}
	e.attributes(4, p.Attributes)
	e.raw(p)
}

// entry writes an entry of a map.
func (e *encoder) entry(num int, key string, value func()) {
	e.nest(num, func() {
		e.text(1, key)
		e.nest(2, value)
	})
}

func (e *encoder) attributes(num int, list []mil.Attribute) {
	for _, a := range list {
		e.entry(num, a.Name, func() { e.value(a.Value) })
	}
}

func (e *encoder) function(f *mil.Function) {
	for i := range f.Inputs {
		e.variable(1, &f.Inputs[i].Variable)
	}
	e.text(2, f.Opset.String())
	e.entry(3, f.Opset.String(), func() { e.block(f.Body) })
	e.attributes(4, f.Attributes)
	e.raw(f)
}

func (e *encoder) block(b *mil.Block) {
	for i := range b.Inputs {
		e.variable(1, &b.Inputs[i])
	}
	for _, name := range b.Outputs {
		e.element(2, name)
	}
	for _, op := range b.Ops {
		e.nest(3, func() { e.op(op) })
	}
	e.attributes(4, b.Attributes)
	e.raw(b)
}

func (e *encoder) op(o *mil.Op) {
	e.text(1, o.Type)
	for _, arg := range o.Inputs {
		e.entry(2, arg.Name, func() { e.bindings(arg.Bindings) })
	}
	for i := range o.Outputs {
		e.variable(3, &o.Outputs[i])
	}
	for _, b := range o.Blocks {
		e.nest(4, func() { e.block(b) })
	}
	e.attributes(5, o.Attributes)
	e.raw(o)
}

func (e *encoder) bindings(list []mil.Binding) {
	for _, b := range list {
		e.nest(1, func() {
			if b.Value == nil {
				e.element(1, b.Name)
				return
			}
			e.nest(2, func() { e.value(b.Value) })
		})
	}
}

func (e *encoder) variable(num int, v *mil.Variable) {
	e.nest(num, func() {
		e.text(1, v.Name)
		e.nest(2, func() { e.typ(&v.Type) })
		e.raw(v)
	})
}

// typ writes a type, as it was read if it had unknown fields and has not changed since.
func (e *encoder) typ(t *mil.Type) {
	if e.kept != nil {
		if raw, ok := e.kept.types[t]; ok && rereadType(raw).Equal(*t) {
			e.buf = append(e.buf, raw...)
			return
		}
	}
	switch t.Kind {
	case mil.List:
		e.nest(2, func() {
			e.nest(1, func() { e.typ(&t.Inner.Types[0]) })
			e.nest(2, func() { e.dimension(t.Inner.Length) })
		})
	case mil.Tuple:
		e.nest(3, func() {
			for i := range t.Inner.Types {
				e.nest(1, func() { e.typ(&t.Inner.Types[i]) })
			}
		})
	case mil.Dictionary:
		e.nest(4, func() {
			e.nest(1, func() { e.typ(&t.Inner.Types[0]) })
			e.nest(2, func() { e.typ(&t.Inner.Types[1]) })
		})
	case mil.State:
		e.nest(5, func() {
			e.nest(1, func() { e.typ(&t.Inner.Types[0]) })
		})
	default:
		e.nest(1, func() { e.tensorType(t) })
	}
}

func rereadType(raw string) mil.Type {
	d := &decoder{message: newMessage("", "ValueType", raw), kept: &Kept{}}
	return d.typeOf(d.message)
}

func (e *encoder) tensorType(t *mil.Type) {
	rank := int64(len(t.Shape))
	if !t.Ranked() {
		rank = -1
	}
	e.integer(1, int64(t.DType))
	e.integer(2, rank)
	for _, d := range t.Shape {
		e.nest(3, func() { e.dimension(d) })
	}
}

func (e *encoder) dimension(d int64) {
	switch d {
	case mil.Unknown:
		e.nest(2, func() {})
	case mil.Variadic:
		e.nest(2, func() { e.integer(1, 1) })
	default:
		e.nest(1, func() { e.integer(1, d) })
	}
}

// value writes a value, as it was read if it had unknown fields and has not changed since.
func (e *encoder) value(v *mil.Value) {
	b := v.Blob()
	if placed := e.places[v]; placed != nil {
		b = placed
	}
	if e.kept != nil && b == v.Blob() {
		if raw, ok := e.kept.values[v]; ok && rereadValue(raw).Equal(v) {
			e.buf = append(e.buf, raw...)
			return
		}
	}
	e.nest(2, func() { e.typ(&v.Type) })
	if b != nil {
		e.nest(5, func() {
			e.text(1, b.File)
			e.integer(2, int64(b.Offset))
		})
		return
	}
	e.nest(3, func() { e.content(v) })
}

func rereadValue(raw string) *mil.Value {
	d := &decoder{message: newMessage("", "Value", raw), kept: &Kept{}}
	return d.valueOf(d.message)
}

func (e *encoder) content(v *mil.Value) {
	switch c := v.Content.(type) {
	case mil.Items:
		num := 2
		if v.Type.Kind == mil.List {
			num = 3
		}
		e.nest(num, func() {
			for _, x := range c {
				e.nest(1, func() { e.value(x) })
			}
		})
	case mil.Pairs:
		e.nest(4, func() {
			for _, p := range c {
				e.nest(1, func() {
					e.nest(1, func() { e.value(p.Key) })
					e.nest(2, func() { e.value(p.Value) })
				})
			}
		})
	case mil.Strings:
		e.nest(1, func() {
			e.nest(tensorStrings, func() {
				for _, s := range c {
					e.element(1, s)
				}
			})
		})
	case mil.Raw:
		e.nest(1, func() {
			num := holder(v.Type.DType)
			e.nest(num, func() { e.numbers(num, v.Type.DType, string(c)) })
		})
	default:
		panic(panicContent)
	}
}

const panicContent = "spec: constants that lie elsewhere must be blobs before a model is written"

// numbers writes the bytes of a tensor into the list of its type.
func (e *encoder) numbers(num int, t mil.DType, raw string) {
	width := t.Bits() / 8
	switch {
	case len(raw) == 0:
	case num == tensorBytes || num == tensorFloats || num == tensorDoubles:
		e.element(1, raw)
	default:
		e.nest(1, func() {
			for i := 0; i+width <= len(raw); i += width {
				var b [8]byte
				copy(b[:], raw[i:i+width])
				e.varint(uint64(mil.Element(t, b[:], 0)))
			}
		})
	}
}
