package miltext

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unsafe"

	"anelab/coreml/mil"
	"anelab/internal/half"
)

// value: TYPE(literal), or TYPE(BLOBFILE(path = string("…"), offset = uint64(64))).
func (p *parser) value(depth int) *mil.Value {
	t := p.typ(depth)
	p.want("(")
	v := p.literal(t, depth)
	p.want(")")
	return v
}

func (p *parser) literal(t mil.Type, depth int) *mil.Value {
	if depth > maxDepth {
		p.fail(p.tok.at, ErrTooDeep, "", fmt.Sprintf("at most %d levels", maxDepth))
	}
	if !p.charge(int(unsafe.Sizeof(mil.Value{}))) {
		return nil
	}
	v := &mil.Value{Type: t}
	switch {
	case p.tok.kind == word && p.tok.text == "BLOBFILE":
		v.Content = p.blob()
	case t.Kind == mil.Tensor:
		p.tensor(v)
	case t.Kind == mil.List:
		v.Content = p.items("[", "]", v.Type, depth)
	case t.Kind == mil.Tuple:
		v.Content = p.items("(", ")", v.Type, depth)
	case t.Kind == mil.Dictionary:
		v.Content = p.pairs(t, depth)
	default:
		p.fail(p.tok.at, ErrLiteral, "a constant of type "+t.String(), "")
	}
	return v
}

func (p *parser) blob() *mil.Blob {
	if !p.charge(int(unsafe.Sizeof(mil.Blob{}))) {
		return nil
	}
	b := &mil.Blob{}
	at := p.tok.at
	p.name("BLOBFILE")
	p.want("(")
	p.name("path")
	p.want("=")
	file := p.value(0)
	p.want(",")
	p.name("offset")
	p.want("=")
	offset := p.value(0)
	p.want(")")
	if p.err != nil {
		return b
	}
	var okFile, okOffset bool
	var n int64
	b.File, okFile = file.Text()
	n, okOffset = offset.Int()
	b.Offset = uint64(n)
	if !okFile || !okOffset {
		p.fail(at, ErrLiteral, "a path or offset of another type", "a string and a uint64")
	}
	return b
}

// items: the members of a list or tuple, without their types.
func (p *parser) items(open, shut string, t mil.Type, depth int) mil.Items {
	items := mil.Items{}
	p.want(open)
	for p.err == nil && !p.is(shut) {
		if len(items) > 0 && !p.want(",") {
			break
		}
		member := t.Elem(0)
		if t.Kind == mil.Tuple {
			member = t.Elem(len(items))
		}
		items = grow(p, items, p.literal(member, depth+1))
	}
	p.want(shut)
	return items
}

// pairs: {{key, value}, …}.
func (p *parser) pairs(t mil.Type, depth int) mil.Pairs {
	pairs := mil.Pairs{}
	p.want("{")
	for p.err == nil && !p.is("}") {
		if len(pairs) > 0 && !p.want(",") {
			break
		}
		p.want("{")
		key := p.literal(t.Elem(0), depth+1)
		p.want(",")
		value := p.literal(t.Elem(1), depth+1)
		p.want("}")
		pairs = grow(p, pairs, mil.Pair{Key: key, Value: value})
	}
	p.want("}")
	return pairs
}

// tensor: a scalar, or brackets inside brackets. An open dimension takes the size that the literal has.
func (p *parser) tensor(v *mil.Value) {
	e := &elements{parser: p, d: v.Type.DType, shape: v.Type.Shape}
	if !v.Type.Static() {
		e.shape = append([]int64{}, v.Type.Shape...)
		v.Type.Shape = e.shape
	}
	at := p.tok.at
	if n, ok := v.Type.Count(); ok && n <= int64(len(p.text)-at) { // an element takes a byte of text at least
		e.reserve(n)
	}
	e.nest(0)
	if n, ok := v.Type.Count(); p.err == nil && (!ok || e.n != n) {
		p.fail(at, ErrLiteral, fmt.Sprintf("%d elements", e.n), v.Type.String())
	}
	if e.d == mil.String {
		v.Content = e.text
		return
	}
	v.Content = mil.Raw(e.raw)
}

// elements gathers the elements of a tensor.
type elements struct {
	*parser
	d     mil.DType
	shape []int64
	n     int64
	raw   []byte // packed
	text  mil.Strings
}

// reserve makes room for n elements. Each place is charged twice: the bytes become a string in the end.
func (e *elements) reserve(n int64) {
	if e.d == mil.String {
		if e.charge(int(n) * int(unsafe.Sizeof("")) * 5 / 4) {
			e.text = make(mil.Strings, 0, n)
		}
		return
	}
	if size := int(e.d.Bytes(n)); e.charge(size * 5 / 2) {
		e.raw = append(make([]byte, 0, size), e.raw...)
	}
}

func (e *elements) nest(level int) {
	if level == len(e.shape) {
		e.element()
		return
	}
	if len(e.shape) > maxDepth {
		e.fail(e.tok.at, ErrTooDeep, "", fmt.Sprintf("rank %d at most", maxDepth))
		return
	}
	at, n := e.tok.at, int64(0)
	e.want("[")
	for e.err == nil && !e.is("]") {
		if n > 0 && !e.want(",") {
			break
		}
		e.nest(level + 1)
		n++
	}
	e.want("]")
	if e.shape[level] < 0 {
		e.shape[level] = n
	}
	if e.err == nil && n != e.shape[level] {
		e.fail(at, ErrLiteral, fmt.Sprintf("%d entries in dimension %d", n, level), fmt.Sprint(e.shape[level]))
	}
}

func (e *elements) element() {
	e.n++
	t := e.tok
	if e.d == mil.String {
		if t.kind != quotation {
			e.unexpected("a string")
			return
		}
		e.text = grow(e.parser, e.text, e.unescape(t.text))
		e.next()
		return
	}
	bits, ok := parseElement(e.d, t.text)
	if t.kind != number && t.kind != word || !ok {
		e.fail(t.at, ErrLiteral, "\""+clip(t.text)+"\"", "a number of type "+e.d.String())
		return
	}
	e.next()
	size := int(e.d.Bytes(e.n))
	if size > cap(e.raw) {
		e.reserve(2 * e.n)
	}
	if e.err == nil {
		e.raw = e.raw[:size]
		mil.SetBits(e.d, e.raw, e.n-1, bits)
	}
}

// parseElement is the bit pattern that a word or number stands for.
func parseElement(d mil.DType, text string) (bits uint64, ok bool) {
	switch {
	case d == mil.Bool:
		return map[string]uint64{"true": 1}[text], text == "true" || text == "false"
	case d == mil.UInt64:
		n, err := strconv.ParseUint(text, 10, 64)
		return n, err == nil
	case d.IsInt():
		n, ok := parseInt(d, text)
		return uint64(n), ok
	}
	if !d.IsFloat() || strings.IndexByte(text, '_') >= 0 {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, false
	}
	return floatBits(d, f)
}

// parseInt reads an integer that must fit the type.
func parseInt(d mil.DType, text string) (n int64, ok bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	bits := d.Bits()
	switch {
	case err != nil:
		return 0, false
	case d.IsUnsigned():
		return n, n >= 0 && (bits >= 63 || n < 1<<bits)
	}
	return n, bits == 64 || n >= -1<<(bits-1) && n < 1<<(bits-1)
}

// floatBits rounds a number to a type. Texts hold exact values, so that nothing is lost.
func floatBits(d mil.DType, f float64) (bits uint64, ok bool) {
	switch d {
	case mil.Float16:
		return uint64(half.F32ToF16(float32(f))), true
	case mil.BFloat16:
		return uint64(half.F32ToBF16(float32(f))), true
	case mil.Float32:
		return uint64(math.Float32bits(float32(f))), true
	case mil.Float64:
		return math.Float64bits(f), true
	}
	for code := range 256 { // 8-bit types have few enough values to look for the one
		if x := mil.Float(d, []byte{byte(code)}, 0); x == f && math.Signbit(x) == math.Signbit(f) || x != x && f != f {
			return uint64(code), true
		}
	}
	return 0, false
}
