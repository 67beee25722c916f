package miltext

import (
	"math"
	"strconv"
	"strings"

	"anelab/coreml/mil"
)

// value writes a value with its type.
func (p *printer) value(v *mil.Value) {
	p.typ(v.Type)
	p.put("(")
	p.literal(v, outermost)
	p.put(")")
}

// level says whether a literal stands by itself, or in a list, tuple or dictionary, where numbers are decimal.
type level bool

const (
	outermost level = false
	inside    level = true
)

func (p *printer) literal(v *mil.Value, at level) {
	switch c := v.Content.(type) {
	case *mil.Blob:
		p.put("BLOBFILE(path = ")
		p.value(mil.Scalar(c.File))
		p.put(", offset = ")
		p.value(mil.Scalar(c.Offset))
		p.put(")")
	case mil.Items:
		open, shut := "[", "]"
		if v.Type.Kind == mil.Tuple {
			open, shut = "(", ")"
		}
		p.put(open)
		for i, x := range c {
			p.comma(i)
			p.literal(x, inside)
		}
		p.put(shut)
	case mil.Pairs:
		p.put("{")
		for i, x := range c {
			p.comma(i)
			p.put("{")
			p.literal(x.Key, inside)
			p.put(", ")
			p.literal(x.Value, inside)
			p.put("}")
		}
		p.put("}")
	default:
		p.tensor(v, at)
	}
}

// tensor writes the elements in brackets, one pair for each dimension.
func (p *printer) tensor(v *mil.Value, at level) {
	e := elementPrinter{printer: p, d: v.Type.DType, at: at}
	if n, ok := v.Type.Count(); !ok || n > math.MaxInt32 {
		p.fail("a constant of type " + v.Type.String())
		return
	}
	if text, ok := v.Content.(mil.Strings); ok {
		e.text = text
	} else {
		var err error
		if e.raw, err = v.Bytes(); err != nil {
			p.err = err
			return
		}
	}
	e.nest(v.Type.Shape)
}

// elementPrinter writes the elements of one tensor.
type elementPrinter struct {
	*printer
	d    mil.DType
	at   level
	raw  []byte
	text []string
	next int64
}

func (e *elementPrinter) nest(shape []int64) {
	if len(shape) == 0 {
		e.element()
		return
	}
	e.put("[")
	for i := range shape[0] {
		e.comma(int(i))
		e.nest(shape[1:])
	}
	e.put("]")
}

func (e *elementPrinter) element() {
	i := e.next
	e.next++
	switch {
	case e.d == mil.String && i < int64(len(e.text)):
		e.put(quote(e.text[i]))
	case e.d == mil.String || (i+1)*int64(e.d.Bits()) > 8*int64(len(e.raw)):
		e.fail("a constant with fewer elements than its type")
	case e.d == mil.Bool:
		e.put(strconv.FormatBool(mil.Element(e.d, e.raw, i) != 0))
	case e.d == mil.UInt64:
		e.put(strconv.FormatUint(mil.Bits(e.d, e.raw, i), 10))
	case e.d.IsInt():
		e.put(strconv.FormatInt(mil.Element(e.d, e.raw, i), 10))
	case e.at == inside:
		e.put(decimal(mil.Float(e.d, e.raw, i)))
	default:
		e.put(hexadecimal(mil.Float(e.d, e.raw, i)))
	}
}

// hexadecimal writes a number as C does: 0x1.5p-17, without trailing zeros, subnormals normalized.
func hexadecimal(x float64) string {
	switch {
	case math.IsNaN(x):
		return "nan"
	case math.IsInf(x, 1):
		return "inf"
	case math.IsInf(x, -1):
		return "-inf"
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(x, 'x', -1, 64), "p")
	sign, digits := exponent[:1], strings.TrimLeft(exponent[1:], "0")
	if digits == "" {
		digits = "0"
	}
	return mantissa + "p" + sign + digits
}

// decimal writes a number with 17 digits as C's %.17g does.
func decimal(x float64) string {
	s := strconv.FormatFloat(x, 'g', 17, 64)
	mantissa, exponent, has := strings.Cut(s, "e")
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	if has {
		return mantissa + "e" + exponent
	}
	return mantissa
}

func quote(s string) string {
	if !strings.ContainsAny(s, "\\\"\n\t\r") {
		return `"` + s + `"`
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(s) + `"`
}
