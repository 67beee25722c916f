package quant

import (
	"encoding/binary"
	"math"
	"slices"
	"sort"

	"anelab/internal/half"
)

// block is a group of channels: rows r0 … r1−1 of columns c0 … c1−1.
type block struct{ r0, r1, c0, c1 int }

func (b block) elements() int { return (b.r1 - b.r0) * (b.c1 - b.c0) }

// tally reads groups of one matrix as the converter's arithmetic sees them, counts their values, and turns elements into
// indices once every value has one. A worker has a tally of its own.
type tally interface {
	// count fills h with the values of a group and reports values that are no numbers.
	count(h *histogram, b block) (nonfinite int)
	// assign gives the i-th value of the last count index[i].
	assign(index []byte)
	// indices is the index of elements (r, c…) of the group.
	indices(dst []byte, r, c int)
	// row is the value of elements (r, c…).
	row(dst []float32, r, c int)
}

// newTally chooses the arithmetic: float32 weights stay what they are, all others are fp16 to a Core ML package. scale divides
// the channels of one axis before anything else.
func newTally(m Matrix, scale *channelScale) tally {
	if entryType(m) == F32 {
		return &singles{read: singleReader(m, scale)}
	}
	return newHalves(m, scale)
}

// entryType is the type of a palette's entries for m.
func entryType(m Matrix) DType {
	if d, ok := m.(*dense); ok && d.dtype == F32 {
		return F32
	}
	return F16
}

// halves counts 16-bit codes. There are 65536 of them, so nothing is sorted.
type halves struct {
	read   func(r, c, n int) []byte // little-endian codes of elements (r, c…)
	values *[1 << 16]float32        // fp16 value of a code
	counts [1 << 16]uint32
	table  [1 << 16]byte // index of every code
	codes  []uint16      // that the last count met, ascending by value
	place  []int32       // number of the value of each; several codes may have one
}

func (t *halves) count(h *histogram, b block) (nonfinite int) {
	clear(t.counts[:])
	for r := b.r0; r < b.r1; r++ {
		for src := t.read(r, b.c0, b.c1-b.c0); len(src) >= 2; src = src[2:] {
			t.counts[binary.LittleEndian.Uint16(src)]++
		}
	}
	h.values, h.counts, t.codes, t.place = h.values[:0], h.counts[:0], t.codes[:0], t.place[:0]
	for code := 0xffff; code >= 0x8000; code-- {
		if t.counts[code] > 0 {
			nonfinite += t.take(h, code)
		}
	}
	for code := range 0x8000 {
		if t.counts[code] > 0 {
			nonfinite += t.take(h, code)
		}
	}
	return nonfinite
}

// take enters the elements of one code and returns how many of them are no numbers.
func (t *halves) take(h *histogram, code int) (nonfinite int) {
	x, n := float64(t.values[code]), t.counts[code]
	if x-x != 0 {
		return int(n)
	}
	last := len(h.values) - 1
	if last >= 0 && h.values[last] == x {
		h.counts[last] += float64(n)
	} else {
		h.values, h.counts = append(h.values, x), append(h.counts, float64(n))
		last++
	}
	t.codes, t.place = append(t.codes, uint16(code)), append(t.place, int32(last))
	return 0
}

func (t *halves) assign(index []byte) {
	for i, code := range t.codes {
		t.table[code] = index[t.place[i]]
	}
}

func (t *halves) indices(dst []byte, r, c int) {
	src := t.read(r, c, len(dst))
	for i := range dst {
		if len(src) < 2 {
			return
		}
		dst[i] = t.table[binary.LittleEndian.Uint16(src)]
		src = src[2:]
	}
}

func (t *halves) row(dst []float32, r, c int) {
	src := t.read(r, c, len(dst))
	for i := range dst {
		dst[i] = t.values[binary.LittleEndian.Uint16(src[2*i:])]
	}
}

// newHalves reads the bytes of dense 16-bit weights as they are, and rounds all others to fp16.
func newHalves(m Matrix, scale *channelScale) *halves {
	if d, ok := m.(*dense); ok && scale == nil {
		t := &halves{values: half.F16Table(), read: func(r, c, n int) []byte { return d.data[2*(r*d.cols+c):][:2*n] }}
		if d.dtype == BF16 {
			t.values = half.BF16AsF16Table()
		}
		return t
	}
	read, line, codes := exactReader(m, scale), []float32(nil), []byte(nil)
	return &halves{values: half.F16Table(), read: func(r, c, n int) []byte {
		line, codes = grow(line, n), codes[:0]
		read(line, r, c)
		for _, x := range line {
			codes = binary.LittleEndian.AppendUint16(codes, half.F32ToF16(x))
		}
		return codes
	}}
}

// singles counts float32 values, by sorting a copy of the group.
type singles struct {
	read   func(dst []float32, r, c int)
	values []float32
	starts []float32 // first value of every run of one index
	index  []byte    // of the runs
	last   *histogram
}

func (t *singles) count(h *histogram, b block) (nonfinite int) {
	width := b.c1 - b.c0
	t.values = grow(t.values, b.elements())
	for r := b.r0; r < b.r1; r++ {
		t.read(t.values[(r-b.r0)*width:][:width], r, b.c0)
	}
	for _, x := range t.values {
		if x-x != 0 {
			nonfinite++
		}
	}
	slices.Sort(t.values)
	h.values, h.counts = h.values[:0], h.counts[:0]
	for _, x := range t.values {
		if n := len(h.values); n > 0 && h.values[n-1] == float64(x) {
			h.counts[n-1]++
			continue
		}
		h.values, h.counts = append(h.values, float64(x)), append(h.counts, 1)
	}
	t.last = h
	return nonfinite
}

// assign keeps the runs of values that share an index: indices ascend with values in every mode.
func (t *singles) assign(index []byte) {
	t.starts, t.index = t.starts[:0], t.index[:0]
	for i, x := range t.last.values {
		if i == 0 || index[i] != index[i-1] {
			t.starts, t.index = append(t.starts, float32(x)), append(t.index, index[i])
		}
	}
}

func (t *singles) indices(dst []byte, r, c int) {
	t.values = grow(t.values, len(dst))
	t.read(t.values, r, c)
	for i, x := range t.values {
		dst[i] = t.index[sort.Search(len(t.starts), func(s int) bool { return t.starts[s] > x })-1]
	}
}

func (t *singles) row(dst []float32, r, c int) { t.read(dst, r, c) }

// singleReader reads elements (r, c…) as float32, with one zero.
func singleReader(m Matrix, scale *channelScale) func(dst []float32, r, c int) {
	read := exactReader(m, scale)
	return func(dst []float32, r, c int) {
		read(dst, r, c)
		for i, x := range dst {
			if x == 0 {
				dst[i] = 0
			}
		}
	}
}

// exactReader reads elements (r, c…) as float32.
func exactReader(m Matrix, scale *channelScale) func(dst []float32, r, c int) {
	read := partReader(m)
	if scale == nil {
		return read
	}
	return func(dst []float32, r, c int) {
		read(dst, r, c)
		scale.divide(dst, r, c)
	}
}

// partReader reads part of a row; only dense weights can do so without decoding all of it.
func partReader(m Matrix) func(dst []float32, r, c int) {
	if d, ok := m.(*dense); ok {
		size := d.dtype.Size()
		return func(dst []float32, r, c int) {
			at := r*d.cols + c
			d.decode(dst, d.data[size*at:size*(at+len(dst))])
		}
	}
	line := make([]float32, m.Cols())
	return func(dst []float32, r, c int) {
		m.Row(line, r)
		copy(dst, line[c:])
	}
}

// channelScale is the largest magnitude of every channel of one axis (spec coreml.md §5 no. 6).
type channelScale struct {
	factor []float32
	byRow  bool
	half   bool // fp16 arithmetic
}

// newChannelScale measures m over the channels of an axis: a factor per column for axis 0, per row for axis 1. A channel of
// zeros has the factor 1.
func newChannelScale(m Matrix, axis int) *channelScale {
	s := &channelScale{byRow: axis == 1, half: entryType(m) == F16}
	s.factor = make([]float32, []int{m.Cols(), m.Rows()}[axis])
	line := make([]float32, m.Cols())
	for r := range m.Rows() {
		m.Row(line, r)
		for c, x := range line {
			if s.half {
				x = half.RoundF16(x)
			}
			at := s.at(r, c)
			*at = max(*at, float32(math.Abs(float64(x))))
		}
	}
	for i, x := range s.factor {
		if x == 0 {
			s.factor[i] = 1
		}
	}
	return s
}

func (s *channelScale) at(r, c int) *float32 {
	if s.byRow {
		return &s.factor[r]
	}
	return &s.factor[c]
}

func (s *channelScale) divide(dst []float32, r, c int) {
	for i := range dst {
		if f := *s.at(r, c+i); s.half {
			dst[i] = half.RoundF16(half.RoundF16(dst[i]) / f)
		} else {
			dst[i] /= f
		}
	}
}
