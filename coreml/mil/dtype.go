package mil

// DType is the type of one element. Its numbers are those of DataType in the model specification.
type DType uint8

// The element types of the specification.
const (
	NoType   DType = 0
	Bool     DType = 1
	String   DType = 2
	Float16  DType = 10
	Float32  DType = 11
	Float64  DType = 12
	BFloat16 DType = 13
	Int8     DType = 21
	Int16    DType = 22
	Int32    DType = 23
	Int64    DType = 24
	Int4     DType = 25
	UInt8    DType = 31
	UInt16   DType = 32
	UInt32   DType = 33
	UInt64   DType = 34
	UInt4    DType = 35
	UInt2    DType = 36
	UInt1    DType = 37
	UInt6    DType = 38
	UInt3    DType = 39
	F8E4M3FN DType = 40
	F8E5M2   DType = 41
)

// class says how the bits of an element are read.
type class uint8

const (
	floating class = iota + 1
	signed
	unsigned
	logical
	text
)

// dtypes describes every known DType.
var dtypes = [...]struct {
	name  string
	bits  int
	class class
}{
	Bool:     {"bool", 8, logical},
	String:   {"string", 0, text},
	Float16:  {"fp16", 16, floating},
	Float32:  {"fp32", 32, floating},
	Float64:  {"fp64", 64, floating},
	BFloat16: {"bf16", 16, floating},
	Int8:     {"int8", 8, signed},
	Int16:    {"int16", 16, signed},
	Int32:    {"int32", 32, signed},
	Int64:    {"int64", 64, signed},
	Int4:     {"int4", 4, signed},
	UInt8:    {"uint8", 8, unsigned},
	UInt16:   {"uint16", 16, unsigned},
	UInt32:   {"uint32", 32, unsigned},
	UInt64:   {"uint64", 64, unsigned},
	UInt4:    {"uint4", 4, unsigned},
	UInt2:    {"uint2", 2, unsigned},
	UInt1:    {"uint1", 1, unsigned},
	UInt6:    {"uint6", 6, unsigned},
	UInt3:    {"uint3", 3, unsigned},
	F8E4M3FN: {"fp8e4m3fn", 8, floating},
	F8E5M2:   {"fp8e5m2", 8, floating},
}

var dtypeByName = func() map[string]DType {
	m := map[string]DType{}
	for d, info := range dtypes {
		if info.name != "" {
			m[info.name] = DType(d)
		}
	}
	return m
}()

// ParseDType finds a type by the name that texts and cast ops use: fp16, int32, uint4, bool, …
func ParseDType(name string) (DType, bool) {
	d, ok := dtypeByName[name]
	return d, ok
}

// Known reports whether d is a type of the specification.
func (d DType) Known() bool { return int(d) < len(dtypes) && dtypes[d].name != "" }

// String is the name used in texts.
func (d DType) String() string {
	if !d.Known() {
		return "unknown type"
	}
	return dtypes[d].name
}

// Bits is the width of an element as stored, 0 for strings.
func (d DType) Bits() int {
	if !d.Known() {
		return 0
	}
	return dtypes[d].bits
}

// SubByte reports whether elements straddle bytes or share them.
func (d DType) SubByte() bool { return d.Bits() > 0 && d.Bits() < 8 }

// IsFloat reports whether elements are floating-point numbers.
func (d DType) IsFloat() bool { return d.Known() && dtypes[d].class == floating }

// IsInt reports whether elements are integers, signed or not, of any width.
func (d DType) IsInt() bool { return d.IsSigned() || d.IsUnsigned() }

// IsSigned reports whether elements are two's complement integers.
func (d DType) IsSigned() bool { return d.Known() && dtypes[d].class == signed }

// IsUnsigned reports whether elements are unsigned integers.
func (d DType) IsUnsigned() bool { return d.Known() && dtypes[d].class == unsigned }

// Bytes is the size of n packed elements.
func (d DType) Bytes(n int64) int64 { return (n*int64(d.Bits()) + 7) / 8 }
