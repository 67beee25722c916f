package quant

import (
	"fmt"
	"regexp"
	"strconv"

	"anelab/internal/format"
)

// Encoding says how the elements of a weight matrix are stored. The zero value is not an encoding.
//
// Text forms: "f32", "f16", "bf16"; "int4g32" is a palette of 2^4 fp16 entries shared by 32 output rows; without "g…" one
// palette serves the whole matrix.
type Encoding struct {
	DType DType // element type of a dense encoding; F16 for the entries of a palette
	Bits  int   // bits of one stored element or index
	Group int   // output rows per palette; 0 = one palette for all; unused when dense
}

// The encodings that checkpoints and shipped chunks use.
var (
	DenseF32  = Encoding{DType: F32, Bits: 32}
	DenseF16  = Encoding{DType: F16, Bits: 16}
	DenseBF16 = Encoding{DType: BF16, Bits: 16}
	Int4G32   = Encoding{DType: F16, Bits: 4, Group: 32}
)

// Palette reports whether elements are indices into tables.
func (e Encoding) Palette() bool { return e.Bits > 0 && e.Bits <= 8 }

func (e Encoding) String() string {
	switch {
	case !e.Palette():
		return e.DType.String()
	case e.Group == 0:
		return fmt.Sprintf("int%d", e.Bits)
	}
	return fmt.Sprintf("int%dg%d", e.Bits, e.Group)
}

// Bytes is the stored size of a matrix [rows, cols]: indices packed without gaps, plus its tables.
// For int4g32 this is rows·cols/2 + 32 B per group (spec forward.md §8.1).
func (e Encoding) Bytes(rows, cols int) int64 {
	n := (int64(rows)*int64(cols)*int64(e.Bits) + 7) / 8
	if !e.Palette() {
		return n
	}
	groups := int64(1)
	if e.Group > 0 {
		groups = int64((rows + e.Group - 1) / e.Group)
	}
	return n + groups*int64(e.DType.Size())<<e.Bits
}

var encodingText = regexp.MustCompile(`^int([1-9])(?:g([1-9][0-9]{0,5}))?$`)

// Encodings lists the names that error messages suggest.
var Encodings = []string{"f32", "f16", "bf16", "int4g32", "int8g32", "int6g32", "int3g32", "int2g32", "int4", "int8"}

// ParseEncoding reads the text form; String writes it back.
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
	bits, _ := strconv.Atoi(m[1])
	group, _ := strconv.Atoi(m[2])
	if bits == 5 || bits == 7 || bits == 9 {
		return Encoding{}, &format.Error{Field: "weights", Got: strconv.Quote(s), Want: "1, 2, 3, 4, 6 or 8 bits",
			Fix: "Core ML has no palette of " + m[1] + " bits"}
	}
	return Encoding{DType: F16, Bits: bits, Group: group}, nil
}
