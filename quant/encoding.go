package quant

import (
	"fmt"
	"regexp"
	"strconv"

	"anelab/internal/format"
)

// Encoding says how the elements of a weight matrix are stored. The zero value is not an encoding.
//
// Text forms: "f32", "f16", "bf16"; "int4g32" is a palette of 2^4 fp16 entries shared by 32 output rows, "int4c32" one shared by
// 32 input columns; without either one palette serves the whole matrix. "v2" at the end: an index stands for two elements, one
// below the other (side by side with "c"). "linear8" is an integer times a scale, "linear4b32" with a scale per 32 columns;
// those are read and made here, and no layout asks for them.
type Encoding struct {
	DType  DType // element type of a dense encoding, of the entries of a palette, or I8 and U8 for integers with a scale
	Bits   int   // bits of one stored element or index
	Group  int   // channels per palette; 0 = one palette for all. Columns per scale of a linear encoding; 0 = a scale per row
	Axis   int   // axis of the channels that Group counts: 0 rows, 1 columns
	Vector int   // elements per index along Axis; 0 and 1 are the same
}

// The encodings that checkpoints and shipped chunks use.
var (
	DenseF32  = Encoding{DType: F32, Bits: 32}
	DenseF16  = Encoding{DType: F16, Bits: 16}
	DenseBF16 = Encoding{DType: BF16, Bits: 16}
	Int4G32   = Encoding{DType: F16, Bits: 4, Group: 32}
)

// Palette reports whether elements are indices into tables.
func (e Encoding) Palette() bool { return e.Bits > 0 && e.Bits <= 8 && e.DType.Float() }

// Linear reports whether elements are integers with a scale.
func (e Encoding) Linear() bool { return e.Bits > 0 && e.Bits <= 8 && (e.DType == I8 || e.DType == U8) }

func (e Encoding) String() string {
	if e.Linear() {
		return fmt.Sprintf("linear%d", e.Bits) + suffix("b", e.Group)
	}
	if !e.Palette() {
		return e.DType.String()
	}
	s := fmt.Sprintf("int%d", e.Bits) + suffix([]string{"g", "c"}[e.Axis], e.Group)
	if e.Vector > 1 {
		s += suffix("v", e.Vector)
	}
	return s
}

// suffix is a letter and a number, nothing for 0.
func suffix(letter string, n int) string {
	if n == 0 {
		return ""
	}
	return letter + strconv.Itoa(n)
}

// Bytes is the stored size of a matrix [rows, cols]: indices packed without gaps, plus its tables or two-byte scales.
// For int4g32 this is rows·cols/2 + 32 B per group (spec forward.md §8.1).
func (e Encoding) Bytes(rows, cols int) int64 {
	elements := int64(rows) * int64(cols)
	switch {
	case e.Palette():
		vector := int64(max(e.Vector, 1))
		channels := []int{rows, cols}[e.Axis]
		return (elements/vector*int64(e.Bits)+7)/8 + blocks(channels, e.Group)*vector*int64(e.DType.Size())<<e.Bits
	case e.Linear():
		return (elements*int64(e.Bits)+7)/8 + 2*int64(rows)*blocks(cols, e.Group)
	}
	return (elements*int64(e.Bits) + 7) / 8
}

// blocks is how many runs of size n are divided into; 0 leaves it whole.
func blocks(n, size int) int64 {
	if size == 0 {
		return 1
	}
	return int64((n + size - 1) / size)
}

var encodingText = regexp.MustCompile(`^int([1-9])(?:([gc])([1-9][0-9]{0,5}))?(?:v([2-9]))?$`)

// Encodings lists the names that error messages suggest.
var Encodings = []string{"f32", "f16", "bf16", "int4g32", "int8g32", "int6g32", "int3g32", "int2g32", "int4", "int8"}

// ParseEncoding reads the text form of a dense encoding or a palette; String writes it back.
func ParseEncoding(s string) (Encoding, error) {
	for _, e := range []Encoding{DenseF32, DenseF16, DenseBF16} {
		if s == e.String() {
			return e, nil
		}
	}
	m := encodingText.FindStringSubmatch(s)
	if m == nil {
		return Encoding{}, &format.Error{Field: "weights", Got: strconv.Quote(s), Want: "f32, f16, bf16 or int<bits>[g<rows per palette>]",
			Fix: format.DidYouMean(s, Encodings)}
	}
	e := Encoding{DType: F16}
	e.Bits, _ = strconv.Atoi(m[1])
	e.Group, _ = strconv.Atoi(m[3])
	e.Vector, _ = strconv.Atoi(m[4])
	if m[2] == "c" {
		e.Axis = 1
	}
	if !paletteBits(e.Bits) {
		return Encoding{}, &format.Error{Field: "weights", Got: strconv.Quote(s), Want: "1, 2, 3, 4, 6 or 8 bits",
			Fix: "Core ML has no palette of " + m[1] + " bits"}
	}
	return e, nil
}

// paletteBits reports whether Core ML has palettes of so many bits.
func paletteBits(bits int) bool { return bits >= 1 && bits <= 8 && bits != 5 && bits != 7 }
