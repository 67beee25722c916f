package spec

import (
	"encoding/binary"
	"fmt"

	"anelab/coreml/mil"
)

// typeInto reads the ValueType in the current field. If there are unknown fields inside, the whole is kept as it was.
func (d *decoder) typeInto(in *message, t *mil.Type) {
	before, raw := d.unknown, in.s
	inner := in.inner("ValueType")
	*t = d.typeOf(&inner)
	in.merge(&inner)
	if d.unknown > before && in.charge(sizeKept) {
		if d.kept.types == nil {
			d.kept.types = map[*mil.Type]string{}
		}
		d.kept.types[t] = raw
	}
}

func (d *decoder) typeOf(in *message) mil.Type {
	var t mil.Type
	for in.next() {
		switch in.num {
		case 1:
			t = d.tensorType(in)
		case 2, 3, 4, 5:
			t = mil.Type{Kind: map[int]mil.Kind{2: mil.List, 3: mil.Tuple, 4: mil.Dictionary, 5: mil.State}[in.num]}
			if in.charge(sizeInner) {
				t.Inner = &mil.Components{}
				d.components(in, t.Kind, t.Inner)
			}
		default:
			d.unknown++
		}
	}
	return t
}

// tensorType: 1 dataType, 2 rank, 3 dimensions (each a constant or unknown).
func (d *decoder) tensorType(in *message) mil.Type {
	t := mil.Type{Kind: mil.Tensor}
	rank := int64(0)
	body := in.inner("TensorType")
	t.Shape = room[int64](&body, 3, 8)
	for body.next() {
		switch body.num {
		case 1:
			n := body.integer()
			if n < 0 || n > 255 || !mil.DType(n).Known() {
				body.fail(ErrMalformed, fmt.Sprintf("element type %d", n))
			}
			t.DType = mil.DType(n)
		case 2:
			rank = body.integer()
		case 3:
			t.Shape = append(t.Shape, d.dimension(&body))
		default:
			d.unknown++
		}
	}
	switch {
	case rank == -1 && t.Ranked():
		t.Shape = []int64{mil.Variadic}
	case rank != -1 && rank != int64(len(t.Shape)):
		body.fail(ErrMalformed, fmt.Sprintf("rank %d with %d dimensions", rank, len(t.Shape)))
	}
	in.merge(&body)
	return t
}

// dimension: 1 constant {1 size}, 2 unknown {1 variadic}.
func (d *decoder) dimension(in *message) int64 {
	size := mil.Unknown
	x := in.inner("Dimension")
	for x.next() {
		switch x.num {
		case 1:
			size = d.dimensionField(&x)
			if size < 0 {
				x.fail(ErrMalformed, fmt.Sprintf("dimension %d", uint64(size)))
			}
		case 2:
			size = mil.Unknown
			if d.dimensionField(&x) != 0 {
				size = mil.Variadic
			}
		default:
			d.unknown++
		}
	}
	in.merge(&x)
	return size
}

// dimensionField is the number in the current field's message, 0 if it is not there.
func (d *decoder) dimensionField(in *message) (n int64) {
	x := in.inner("Dimension")
	for x.next() {
		if x.num == 1 {
			n = x.integer()
		} else {
			d.unknown++
		}
	}
	in.merge(&x)
	return n
}

// components: ListType 1 type, 2 length; TupleType 1 types; DictionaryType 1 key, 2 value; StateType 1 wrapped.
func (d *decoder) components(in *message, kind mil.Kind, c *mil.Components) {
	body := in.inner(kind.String())
	n := body.count(1)
	if kind == mil.Dictionary {
		n += body.count(2)
	}
	if !body.charge(n * sizeType) {
		in.merge(&body)
		return
	}
	c.Types = make([]mil.Type, n)
	next := 0
	for body.next() {
		switch {
		case body.num == 2 && kind == mil.List:
			c.Length = d.dimension(&body)
		case body.num == 1 || body.num == 2 && kind == mil.Dictionary:
			d.typeInto(&body, &c.Types[next])
			next++
		default:
			d.unknown++
		}
	}
	want := map[mil.Kind]int{mil.List: 1, mil.State: 1, mil.Dictionary: 2, mil.Tuple: n}[kind]
	if n != want {
		body.fail(ErrMalformed, fmt.Sprintf("%d types in a %s", n, kind))
	}
	in.merge(&body)
}

// value reads the Value in the current field.
func (d *decoder) value(in *message) *mil.Value {
	inner := in.inner("Value")
	v := d.valueOf(&inner)
	in.merge(&inner)
	return v
}

// valueOf: 1 docString, 2 type, 3 immediate, 5 blob. If there are unknown fields inside, the whole is kept as it was.
func (d *decoder) valueOf(in *message) *mil.Value {
	if !in.charge(sizeValue) {
		return nil
	}
	v, before := &mil.Value{}, d.unknown
	look := *in
	for look.next() {
		if look.num == 2 {
			inner := look.inner("ValueType")
			v.Type = d.typeOf(&inner)
			look.merge(&inner)
		}
	}
	if in.err = look.err; in.err != nil {
		return v
	}
	for in.next() {
		switch in.num {
		case 2:
		case 3:
			d.immediate(in, v)
		case 5:
			d.blob(in, v)
		default:
			d.unknown++
		}
	}
	if v.Content == nil {
		in.fail(ErrMalformed, "a value with neither contents nor a blob")
	}
	if d.unknown > before && in.charge(sizeKept) {
		if d.kept.values == nil {
			d.kept.values = map[*mil.Value]string{}
		}
		d.kept.values[v] = in.buf
	}
	return v
}

// blob: 1 fileName, 2 offset.
func (d *decoder) blob(in *message, v *mil.Value) {
	if !in.charge(sizeBlob) {
		return
	}
	b := &mil.Blob{}
	x := in.inner("BlobFileValue")
	for x.next() {
		switch x.num {
		case 1:
			b.File = x.text()
		case 2:
			b.Offset = uint64(x.integer())
		default:
			d.unknown++
		}
	}
	in.merge(&x)
	v.Content = b
}

// immediate: 1 tensor, 2 tuple, 3 list, 4 dictionary.
func (d *decoder) immediate(in *message, v *mil.Value) {
	x := in.inner("ImmediateValue")
	for x.next() {
		switch x.num {
		case 1:
			d.tensor(&x, v)
		case 2, 3:
			d.items(&x, v)
		case 4:
			d.dictionary(&x, v)
		default:
			d.unknown++
		}
	}
	in.merge(&x)
}

// items: the values of a list or tuple are field 1 of it.
func (d *decoder) items(in *message, v *mil.Value) {
	x := in.inner("list")
	list := room[*mil.Value](&x, 1, 8)
	for x.next() {
		if x.num == 1 {
			list = append(list, d.value(&x))
		} else {
			d.unknown++
		}
	}
	in.merge(&x)
	v.Content = mil.Items(list)
}

// dictionary: 1 entries, each 1 key, 2 value.
func (d *decoder) dictionary(in *message, v *mil.Value) {
	x := in.inner("dictionary")
	pairs := room[mil.Pair](&x, 1, 16)
	for x.next() {
		if x.num == 1 {
			pairs = append(pairs, d.pair(&x))
		} else {
			d.unknown++
		}
	}
	in.merge(&x)
	v.Content = mil.Pairs(pairs)
}

func (d *decoder) pair(in *message) (p mil.Pair) {
	x := in.inner("entry")
	for x.next() {
		switch x.num {
		case 1:
			p.Key = d.value(&x)
		case 2:
			p.Value = d.value(&x)
		default:
			d.unknown++
		}
	}
	if p.Key == nil || p.Value == nil {
		x.fail(ErrMalformed, "a dictionary entry without a key or without a value")
	}
	in.merge(&x)
	return p
}

// The lists that a TensorValue may hold.
const (
	tensorFloats  = 1
	tensorInts    = 2
	tensorBools   = 3
	tensorStrings = 4
	tensorLongs   = 5
	tensorDoubles = 6
	tensorBytes   = 7
)

// holder is the list that holds elements of a type.
func holder(t mil.DType) int {
	switch t {
	case mil.Float32:
		return tensorFloats
	case mil.Int32, mil.Int16, mil.UInt16:
		return tensorInts
	case mil.Bool:
		return tensorBools
	case mil.String:
		return tensorStrings
	case mil.Int64:
		return tensorLongs
	case mil.Float64:
		return tensorDoubles
	}
	return tensorBytes
}

// tensor reads a TensorValue: one of seven lists, in which list depends on the element type. Bytes are also accepted for other
// types than those that are written so.
func (d *decoder) tensor(in *message, v *mil.Value) {
	body := in.inner("TensorValue")
	v.Content = mil.Raw("")
	if v.Type.DType == mil.String {
		v.Content = mil.Strings(nil)
	}
	for body.next() {
		switch {
		case body.num > tensorBytes:
			d.unknown++
		case body.num != holder(v.Type.DType) && (body.num != tensorBytes || v.Type.DType == mil.String):
			body.fail(ErrMalformed, fmt.Sprintf("elements of %s in list %d", v.Type.DType, body.num))
		default:
			d.elements(&body, v)
		}
	}
	in.merge(&body)
}

func (d *decoder) elements(in *message, v *mil.Value) {
	list := in.inner("values")
	switch in.num {
	case tensorStrings:
		text := room[string](&list, 1, sizeString)
		for list.next() {
			text = append(text, list.text())
		}
		v.Content = mil.Strings(text)
	case tensorBytes:
		for list.next() {
			v.Content = mil.Raw(list.text())
		}
	case tensorFloats, tensorDoubles:
		d.fixed(&list, v)
	default:
		d.varints(&list, v)
	}
	in.merge(&list)
}

// fixed reads floats and doubles: packed they are the bytes of the tensor as they stand.
func (d *decoder) fixed(list *message, v *mil.Value) {
	n := list.count(1)
	var loose []byte
	for list.next() {
		if n == 1 && list.wire == bytes {
			v.Content = mil.Raw(list.s)
			return
		}
		if list.wire == varint || list.num != 1 {
			list.fail(ErrMalformed, "a list of floating-point numbers of another kind")
			return
		}
		if list.charge(len(list.s)) {
			loose = append(loose, list.s...)
		}
	}
	if loose != nil {
		v.Content = mil.Raw(loose)
	}
}

// varints reads ints, longs and bools into the bytes of the tensor.
func (d *decoder) varints(list *message, v *mil.Value) {
	width, logical := v.Type.DType.Bits()/8, v.Type.DType == mil.Bool
	count := 0
	look := *list
	for look.next() {
		look.numbers(func(uint64) { count++ })
	}
	if list.err = look.err; list.err != nil || !list.charge(2*count*width) {
		return
	}
	raw := make([]byte, 0, count*width)
	for list.next() {
		list.numbers(func(n uint64) {
			var b [8]byte
			if logical {
				n = min(n, 1)
			}
			binary.LittleEndian.PutUint64(b[:], n)
			raw = append(raw, b[:width]...)
		})
	}
	v.Content = mil.Raw(raw)
}
