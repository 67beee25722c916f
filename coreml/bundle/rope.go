package bundle

import (
	"encoding/binary"
	"fmt"

	"anelab/coreml"
	"anelab/internal/checkpoint/mapped"
	"anelab/internal/format"
	"anelab/internal/half"
	"anelab/internal/npy"
	"anelab/quant"
)

// ropeTable is cosines and sines by position, [positions, d].
type ropeTable struct{ cos, sin quant.Tensor }

// openRope reads the rotary tables of one kind of layer. They must reach as far as the chunks: past its last row a runtime would
// take zeros, and attention would no longer see where anything is.
func openRope(dir mapped.Folder, kind string, width, context int) (r ropeTable, err error) {
	for name, t := range map[string]*quant.Tensor{"cos_": &r.cos, "sin_": &r.sin} {
		path := dir.Path(name + kind + ".npy")
		if *t, err = npy.Read(path); err != nil {
			return r, err
		}
		if err := checkRope(path, *t, width, context); err != nil {
			return r, err
		}
	}
	return r, nil
}

func checkRope(path string, t quant.Tensor, width, context int) error {
	got := fmt.Sprintf("%v of %v", t.Shape, t.DType)
	switch {
	case t.DType != quant.F16 || len(t.Shape) != 2 || t.Shape[1] != width:
		return &format.Error{Path: path, Got: got, Want: fmt.Sprintf("fp16, a row of %d for each position", width), Fix: "the head width is that of " + ConfigName}
	case t.Shape[0] < context:
		return &format.Error{Path: path, Got: got, Want: fmt.Sprintf("at least %d rows: the context of %s", context, ConfigName), Err: coreml.ErrContexts,
			Fix: "write the rotary tables for this context; rows past the end would be zeros"}
	}
	return nil
}

// rows fills cos and sin [d] with the rows of a position.
func (r ropeTable) rows(cos, sin []float32, pos int) {
	halves(cos, r.cos.Data[2*pos*len(cos):])
	halves(sin, r.sin.Data[2*pos*len(sin):])
}

func halves(x []float32, data []byte) {
	for i := range x {
		x[i] = half.F16ToF32(binary.LittleEndian.Uint16(data[2*i:]))
	}
}
