package swa

import (
	"fmt"
	"slices"
)

// Saved is what a store held between two calls. It shares no memory with the store.
type Saved struct {
	kind     string
	cells    []cells
	numbers  [][]float32
	codes    [][]uint8
	counters []int
}

// Save copies the committed rows of a store; staged rows are not among them. Of a store with room for a long context only the
// rows in use are copied.
func Save(s Store) Saved {
	m := memoryOf(s)
	out := Saved{kind: m.kind}
	for i, c := range m.cells {
		out.cells = append(out.cells, c.clone(m.used[i]))
	}
	for _, x := range m.numbers {
		out.numbers = append(out.numbers, slices.Clone(x))
	}
	for _, x := range m.codes {
		out.codes = append(out.codes, slices.Clone(x))
	}
	for _, c := range m.counters {
		out.counters = append(out.counters, *c)
	}
	return out
}

// Restore makes a store hold what was saved, bit for bit. The store must be of the shape and context of the one saved.
func (s Saved) Restore(dst Store) {
	m := memoryOf(dst)
	if m.kind != s.kind {
		panic("swa: a store restored from one of another kind")
	}
	for i := range s.counters {
		*m.counters[i] = s.counters[i]
	}
	for i := range s.cells {
		m.cells[i].move(0, &s.cells[i], 0, s.cells[i].len())
	}
	m = memoryOf(dst) // with the counters of what was saved
	for i := range s.numbers {
		copy(m.numbers[i], s.numbers[i])
	}
	for i := range s.codes {
		copy(m.codes[i], s.codes[i])
	}
	m.dropStaged()
}

// Bytes is the memory that it takes.
func (s Saved) Bytes() int64 {
	var n int64
	for i := range s.cells {
		n += s.cells[i].bytesInUse()
	}
	for _, x := range s.numbers {
		n += 4 * int64(len(x))
	}
	for _, x := range s.codes {
		n += int64(len(x))
	}
	return n
}

// memory is where a store keeps its committed rows.
type memory struct {
	kind       string
	cells      []*cells
	used       []int // cells in use
	numbers    [][]float32
	codes      [][]uint8
	counters   []*int
	dropStaged func()
}

func memoryOf(s Store) memory {
	switch s := s.(type) {
	case *Linear:
		n := s.next * s.shape.Width()
		return memory{kind: fmt.Sprintf("linear %v", s.shape), cells: []*cells{&s.k, &s.v}, used: []int{n, n}, counters: []*int{&s.next}, dropStaged: func() { s.staged = 0 }}
	case *Ring:
		n := min(s.next, s.window) * s.shape.Width()
		return memory{kind: fmt.Sprintf("ring %d %v", s.window, s.shape), cells: []*cells{&s.k, &s.v}, used: []int{n, n},
			counters: []*int{&s.next, &s.lost}, dropStaged: s.dropStaged}
	case *Bank:
		m := memoryOf(&s.Ring)
		m.kind += fmt.Sprintf(" behind %d sinks", s.keys.rows)
		n := min(s.next, s.keys.rows) * s.shape.Width()
		m.cells, m.used = append(m.cells, &s.keys.data, &s.values.data), append(m.used, n, n)
		return m
	case *Grouped:
		m := memoryOf(&s.Ring)
		m.kind += fmt.Sprintf(" before groups %v", s.form)
		for _, g := range []*grouped{s.keys, s.values} {
			n := (s.next + g.perPosition - 1) / g.perPosition * g.shape.KVHeads * g.blocks
			m.codes = append(m.codes, g.codes[:s.next*g.shape.Width()])
			m.numbers = append(m.numbers, g.scale[:n], g.zero[:n])
		}
		return m
	case *Indexed:
		m := memoryOf(s.Store)
		m.kind += fmt.Sprintf(" with an index of %d", s.index.block)
		n := s.Next() / s.index.block * s.index.shape.Width()
		m.numbers = append(m.numbers, s.index.lo[:n], s.index.hi[:n])
		return m
	}
	panic("swa: a store that cannot be saved")
}

// clone copies the first n cells.
func (c *cells) clone(n int) cells {
	if c.bytes != nil {
		return cells{elem: c.elem, bytes: &byteCells{d: c.bytes.d, q: slices.Clone(c.bytes.q[:n]), scale: slices.Clone(c.bytes.scale[:n/c.bytes.d])}}
	}
	if c.elem == Float32 {
		return cells{f: slices.Clone(c.f[:n])}
	}
	return cells{elem: c.elem, h: slices.Clone(c.h[:n])}
}

// bytesInUse is the size of all cells.
func (c *cells) bytesInUse() int64 {
	if c.bytes != nil {
		return int64(len(c.bytes.q)) + 2*int64(len(c.bytes.scale))
	}
	return int64(c.elem.Bytes()) * int64(c.len())
}
