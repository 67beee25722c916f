package device

import (
	"fmt"

	"anelab/coreml/mil"
)

// The functions of this file read and write the elements of an MLMultiArray through the blocks that Core ML lends its memory to: the
// address is valid inside the block only, and a pixel buffer is locked for as long.

// write copies a tensor of the same type and shape into an array. The strides are those that the block is told: the array may have
// moved to other memory.
func (m machine) write(array id, t *Tensor) (err error) {
	called := false
	block := m.block(3, func(args []uintptr) {
		called = true
		l := layout{dtype: t.DType, shape: t.Shape, strides: m.ints(id(args[2]))}
		var need int
		if need, err = l.bytes(); err == nil {
			err = fitting(need, int(args[1]))
		}
		if err == nil && need > 0 {
			l.encode(m.memory(args[0], need), t)
		}
	})
	defer m.release(block)
	m.send(array, "getMutableBytesWithHandler:", block)
	if !called {
		return fmt.Errorf("the array has no memory")
	}
	return err
}

// read copies an array into a tensor.
func (m machine) read(array id) (t *Tensor, err error) {
	l := layout{dtype: arrayTypes[m.send(array, "dataType")], shape: m.ints(m.send(array, "shape")), strides: m.ints(m.send(array, "strides"))}
	if l.dtype == mil.NoType {
		return nil, fmt.Errorf("an array of type %#x", uintptr(m.send(array, "dataType")))
	}
	need, err := l.bytes()
	if err != nil {
		return nil, err
	}
	block := m.block(2, func(args []uintptr) {
		if err = fitting(need, int(args[1])); err != nil {
			return
		}
		var memory []byte
		if need > 0 {
			memory = m.memory(args[0], need)
		}
		t = l.decode(memory)
	})
	defer m.release(block)
	m.send(array, "getBytesWithHandler:", block)
	if t == nil && err == nil {
		err = fmt.Errorf("the array has no memory")
	}
	return t, err
}

// fitting refuses memory that is shorter than the strides say.
func fitting(need, have int) error {
	if have < need {
		return fmt.Errorf("%d bytes of memory, the strides reach %d", have, need)
	}
	return nil
}
