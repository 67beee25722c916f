package compress

import (
	"encoding/binary"
	"math"

	"anelab/coreml/mil"
	"anelab/internal/half"
	"anelab/quant"
)

// floats stores numbers that are exact in the type, fp16 or fp32.
func floats(d mil.DType, xs []float32) []byte {
	b := make([]byte, 0, len(xs)*d.Bits()/8)
	for _, x := range xs {
		if d == mil.Float16 {
			b = binary.LittleEndian.AppendUint16(b, half.F32ToF16(x))
		} else {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	return b
}

// offsets stores the zero points of integers.
func offsets(xs []int16, bits int) []byte {
	b := make([]byte, len(xs))
	for i, x := range xs {
		b[i] = byte(x)
	}
	return quant.Pack(b, bits)
}
