package device

import (
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"anelab/coreml/mil"
	"anelab/internal/format"
)

// Backing is where the elements of a buffer lie.
type Backing uint8

// Memory is what Core ML allocates for any array. Surface is a pixel buffer on an IOSurface, which the Neural Engine reads and writes
// without a copy; it holds fp16 only.
const (
	Memory Backing = iota
	Surface
)

// Buffer is an array that goes into or comes out of many calls. While a prediction runs nobody reads or writes its buffers: Read and
// Write wait.
type Buffer struct {
	DType   mil.DType
	Shape   []int
	Backing Backing

	machine machine
	serial  int64 // buffers of one call are locked in this order
	mu      sync.Mutex
	array   id // 0 after Close
}

var serials atomic.Int64

// NewBuffer makes a buffer for the calls of this and of other models. Its contents are zeros.
func (m *Model) NewBuffer(backing Backing, d mil.DType, shape ...int) (*Buffer, error) {
	return m.machine.newBuffer(backing, d, shape)
}

func (m machine) newBuffer(backing Backing, d mil.DType, shape []int) (*Buffer, error) {
	zero := &Tensor{DType: d, Shape: shape}
	if arrayType(d) == 0 || backing == Surface && (d != mil.Float16 || len(shape) == 0) {
		return nil, &format.Error{Field: "buffer", Got: typeText(d, shape), Want: "fp16, fp32, fp64, int32 or int8; on a surface fp16 with at least one dimension", Err: ErrType}
	}
	if slices.ContainsFunc(shape, func(n int) bool { return n <= 0 }) {
		return nil, &format.Error{Field: "buffer", Got: typeText(d, shape), Want: "dimensions above zero", Err: ErrShape}
	}
	zero = NewTensor(d, shape...)
	b := &Buffer{DType: d, Shape: slices.Clone(shape), Backing: backing, machine: m, serial: serials.Add(1)}
	err := m.scope(func() (err error) {
		if b.array, err = m.newArray(backing, d, shape); err != nil {
			return err
		}
		return b.located(m.write(b.array, zero))
	})
	if err != nil {
		m.release(b.array)
		return nil, err
	}
	return b, nil
}

// newArray allocates an MLMultiArray; it is ours.
func (m machine) newArray(backing Backing, d mil.DType, shape []int) (id, error) {
	empty := m.send(m.class("MLMultiArray"), "alloc")
	if backing == Memory {
		array, fault := m.sendFault(empty, "initWithShape:dataType:error:", m.numbers(shape), arrayType(d))
		if array == 0 {
			return 0, m.refused(ErrArray, "", "buffer", fault)
		}
		return array, nil
	}
	width := shape[len(shape)-1]
	pixels, status := m.pixelBuffer(width, count(shape)/width)
	if pixels == 0 {
		m.release(empty)
		return 0, &format.Error{Field: "buffer", Got: "CVPixelBufferCreate returns " + strconv.Itoa(status), Err: ErrArray, Fix: "use Memory instead of Surface"}
	}
	defer m.release(pixels) // the array holds it
	array := m.send(empty, "initWithPixelBuffer:shape:", pixels, m.numbers(shape))
	if array == 0 {
		return 0, &format.Error{Field: "buffer", Got: typeText(d, shape), Err: ErrArray, Fix: "use Memory instead of Surface"}
	}
	return array, nil
}

func (b *Buffer) located(err error) error {
	if err == nil {
		return nil
	}
	return &format.Error{Field: "buffer", Got: typeText(b.DType, b.Shape), Err: errors.Join(ErrArray, err)}
}

// use runs f while nobody else uses the buffer.
func (b *Buffer) use(f func() error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.array == 0 {
		return &format.Error{Field: "buffer", Err: ErrClosed}
	}
	return b.machine.scope(f)
}

// Write copies a tensor of the buffer's type and shape into it.
func (b *Buffer) Write(t *Tensor) error {
	switch {
	case t.DType != b.DType:
		return &format.Error{Field: "buffer", Got: t.DType.String(), Want: b.DType.String(), Err: ErrType}
	case !slices.Equal(t.Shape, b.Shape):
		return &format.Error{Field: "buffer", Got: typeText(t.DType, t.Shape), Want: typeText(b.DType, b.Shape), Err: ErrShape}
	case !t.sound():
		return &format.Error{Field: "buffer", Got: typeText(t.DType, t.Shape), Err: ErrData}
	}
	return b.use(func() error { return b.located(b.machine.write(b.array, t)) })
}

// Read copies the buffer.
func (b *Buffer) Read() (t *Tensor, err error) {
	err = b.use(func() error {
		var err error
		t, err = b.machine.read(b.array)
		return b.located(err)
	})
	return t, err
}

// Close gives the memory back once no prediction uses it.
func (b *Buffer) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.machine.release(b.array)
	b.array = 0
	return nil
}

// lockAll locks every buffer once, in one order whatever the call, so that calls which share buffers wait and never block each other.
func lockAll(buffers []*Buffer) (unlock func()) {
	slices.SortFunc(buffers, func(a, b *Buffer) int { return int(a.serial - b.serial) })
	buffers = slices.Compact(buffers)
	for _, b := range buffers {
		b.mu.Lock()
	}
	return func() {
		for _, b := range buffers {
			b.mu.Unlock()
		}
	}
}
