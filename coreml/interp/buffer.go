package interp

import (
	"sync"

	"anelab/coreml/mil"
)

// buffer is memory of large results that goes back to its pool when no name stands for a view of it. A step then neither clears
// nor allocates what the step before has used.
type buffer struct {
	floats []float32
	users  int // names and states
}

// pools are free buffers by length.
type pools struct{ byLength sync.Map }

func (p *pools) of(n int) *sync.Pool {
	if pool, ok := p.byLength.Load(n); ok {
		return pool.(*sync.Pool)
	}
	pool, _ := p.byLength.LoadOrStore(n, new(sync.Pool))
	return pool.(*sync.Pool)
}

// pooledFrom is the number of elements from which memory is worth keeping.
const pooledFrom = 1 << 12

// blank is a row-major array for an op that writes every element; what is in it now is arbitrary.
func (r *running) blank(d mil.DType, shape ...int) *array {
	n := count(shape)
	if n < pooledFrom || !d.IsFloat() {
		return newArray(d, shape...)
	}
	b, ok := r.free.of(n).Get().(*buffer)
	if !ok {
		b = &buffer{floats: make([]float32, n)}
	}
	a := ofFloats(d, b.floats, shape...)
	a.buffer = b
	return a
}

// hold notes one more user of the memory of v.
func (v *value) hold() {
	if v.array != nil && v.array.buffer != nil {
		v.array.buffer.users++
	}
}

// drop takes a name away; the last user gives the memory back.
func (r *running) drop(name string) {
	if v := r.names[name]; v != nil {
		r.unhold(v.array)
		delete(r.names, name)
	}
}

func (r *running) unhold(a *array) {
	if a == nil || a.buffer == nil {
		return
	}
	if a.buffer.users--; a.buffer.users == 0 {
		r.free.of(len(a.buffer.floats)).Put(a.buffer)
	}
}

// Recycle gives the memory of a tensor to later calls: a cache that has been an input, say, and whose successor is at hand. Neither
// the tensor nor another that shares its elements may be used afterwards.
func (m *Model) Recycle(tensors ...*Tensor) {
	for _, t := range tensors {
		if len(t.Floats) >= pooledFrom {
			m.free.of(len(t.Floats)).Put(&buffer{floats: t.Floats})
			t.Floats = nil
		}
	}
}
