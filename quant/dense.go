package quant

import (
	"encoding/binary"
	"fmt"
	"math"

	"anelab/internal/half"
	"anelab/internal/kernel"
)

// dense is a matrix of one number per element, a view of checkpoint bytes.
type dense struct {
	rows, cols int
	dtype      DType
	data       []byte // [rows, cols] little-endian
	decode     func(dst []float32, src []byte)
	translated bool // decode reads the bytes as another type than they are
}

// Dense views a tensor of shape [rows, cols] as a matrix without copying. Only f32, f16 and bf16 are weights.
func Dense(t Tensor) (Matrix, error) {
	if len(t.Shape) != 2 {
		return nil, fmt.Errorf("quant: tensor %s: shape %v, want two axes [out, in]", t.Name, t.Shape)
	}
	m := &dense{rows: t.Shape[0], cols: t.Shape[1], dtype: t.DType, data: t.Data}
	switch t.DType {
	case F32:
		m.decode = decodeF32
	case BF16:
		m.decode = kernel.DecodeBF16
	case F16:
		m.decode = kernel.DecodeF16
	default:
		return nil, fmt.Errorf("quant: tensor %s: type %s, want f32, f16 or bf16", t.Name, t.DType)
	}
	if len(t.Data) != t.Len()*t.DType.Size() {
		return nil, fmt.Errorf("quant: tensor %s: %d bytes, want %d", t.Name, len(t.Data), t.Len()*t.DType.Size())
	}
	return m, nil
}

func (m *dense) Rows() int             { return m.rows }
func (m *dense) Cols() int             { return m.cols }
func (m *dense) Bytes() int64          { return int64(len(m.data)) }
func (m *dense) MulVec(y, x []float32) { mulVecRows(y, m, x) }

func (m *dense) Encoding() Encoding { return Encoding{DType: m.dtype, Bits: 8 * m.dtype.Size()} }

func (m *dense) Row(dst []float32, r int) {
	n := m.cols * m.dtype.Size()
	m.decode(dst[:m.cols], m.data[r*n:(r+1)*n])
}

func decodeF32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

// AsF16 returns m as arithmetic with fp16 weights sees it: every element rounded to the nearest fp16. A bf16 matrix keeps
// its bytes and is rounded as it is read; palettes and fp16 are already there; f32 is narrowed into a copy.
func AsF16(m Matrix) Matrix {
	d, ok := m.(*dense)
	switch {
	case !ok || d.dtype == F16:
		return m
	case d.dtype == BF16:
		return &dense{rows: d.rows, cols: d.cols, dtype: BF16, data: d.data, decode: kernel.DecodeBF16AsF16, translated: true}
	}
	return narrow(d, F16, half.F32ToF16)
}

// AsBF16 is AsF16 for bfloat16 weights.
func AsBF16(m Matrix) Matrix {
	d, ok := m.(*dense)
	if !ok || d.dtype == BF16 {
		return m
	}
	return narrow(d, BF16, half.F32ToBF16)
}

// narrow copies a matrix into a 16-bit encoding.
func narrow(d *dense, to DType, bits func(float32) uint16) *dense {
	out := &dense{rows: d.rows, cols: d.cols, dtype: to, data: make([]byte, 2*d.rows*d.cols), decode: kernel.DecodeBF16}
	if to == F16 {
		out.decode = kernel.DecodeF16
	}
	row := make([]float32, d.cols)
	for r := range d.rows {
		d.Row(row, r)
		for i, x := range row {
			binary.LittleEndian.PutUint16(out.data[2*(r*d.cols+i):], bits(x))
		}
	}
	return out
}

// Overflows counts the elements that are infinite or not a number when m is read, for example bf16 weights of magnitude
// 65520 and above seen as fp16.
func Overflows(m Matrix) int {
	n, row := 0, make([]float32, m.Cols())
	for r := range m.Rows() {
		m.Row(row, r)
		for _, x := range row {
			if x-x != 0 {
				n++
			}
		}
	}
	return n
}

// ScaledF16 is a copy of m with every element multiplied by c and rounded to fp16: a constant folded into a weight.
func ScaledF16(m Matrix, c float32) Matrix {
	d, ok := m.(*dense)
	if !ok {
		panic("quant: ScaledF16: only dense weights can be folded")
	}
	return narrow(d, F16, func(x float32) uint16 { return half.F32ToF16(x * c) })
}

// Translated reports whether a dense matrix is read as another type than its bytes are: a bf16 matrix seen as fp16.
func Translated(m Matrix) bool {
	d, ok := m.(*dense)
	return ok && d.translated
}
