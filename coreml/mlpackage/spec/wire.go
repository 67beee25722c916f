package spec

import (
	"errors"
	"fmt"

	"anelab/internal/format"
)

// What can be wrong with serialized bytes.
var (
	ErrTruncated = errors.New("the bytes end inside a field")
	ErrMalformed = errors.New("not a valid encoding")
	ErrTooDeep   = errors.New("nested too deeply")
	ErrTooLarge  = errors.New("the structure is too large for its bytes")
	ErrTwice     = errors.New("given twice")
	ErrModelType = errors.New("not an ML program")
	ErrOpset     = errors.New("unknown opset")
	ErrNoBlock   = errors.New("no block for the opset")
)

// Wire types.
const (
	varint  = 0
	fixed64 = 1
	bytes   = 2
	fixed32 = 5
)

const (
	maxDepth    = 96
	spareMemory = 1 << 20 // allowed beyond four times the input
)

// budget counts the memory that decoding takes.
type budget struct {
	path string // of the file, for messages
	left int64
}

// message reads the fields of one message.
type message struct {
	name  string // for messages
	buf   string
	at    int
	base  int // offset of buf in the file
	depth int
	b     *budget
	err   error
	num   int // of the current field
	wire  int
	n     uint64 // its number, if it is one
	s     string // its contents, if it is delimited
	raw   string // the field as it was encoded
}

// next moves to the next field; false at the end, or on a fault.
func (m *message) next() bool {
	if m.err != nil || m.at >= len(m.buf) {
		return false
	}
	start := m.at
	tag := m.varint()
	m.num, m.wire = int(tag>>3), int(tag&7)
	if m.err == nil && (tag>>3 == 0 || tag>>3 > 1<<29-1) {
		m.fail(ErrMalformed, fmt.Sprintf("field number %d", tag>>3))
	}
	switch m.wire {
	case varint:
		m.n = m.varint()
	case fixed64:
		m.s = m.take(8)
	case fixed32:
		m.s = m.take(4)
	case bytes:
		n := m.varint()
		if n > uint64(len(m.buf)-m.at) {
			m.fail(ErrTruncated, fmt.Sprintf("field %d of %d bytes, %d are left", m.num, n, len(m.buf)-m.at))
			return false
		}
		m.s = m.take(int(n))
	default:
		m.fail(ErrMalformed, fmt.Sprintf("field %d of wire type %d", m.num, m.wire))
	}
	m.raw = m.buf[start:m.at]
	return m.err == nil
}

func (m *message) varint() (n uint64) {
	for shift := 0; shift < 64; shift += 7 {
		if m.at >= len(m.buf) {
			m.fail(ErrTruncated, "a number without an end")
			return 0
		}
		b := m.buf[m.at]
		m.at++
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n
		}
	}
	m.fail(ErrMalformed, "a number of more than ten bytes")
	return 0
}

func (m *message) take(n int) string {
	if n > len(m.buf)-m.at {
		m.fail(ErrTruncated, fmt.Sprintf("%d bytes, %d are left", n, len(m.buf)-m.at))
		return ""
	}
	s := m.buf[m.at : m.at+n]
	m.at += n
	return s
}

// fail notes the first fault, at the current offset.
func (m *message) fail(cause error, got string) {
	if m.err == nil {
		m.err = &format.Error{Path: m.b.path, Field: fmt.Sprintf("%s at byte %d", m.name, m.base+m.at), Got: got, Err: cause, Fix: fixFor(cause)}
	}
}

func fixFor(cause error) string {
	switch cause {
	case ErrModelType:
		return "convert it to an ML program"
	case ErrOpset:
		return "convert it for one of the systems from iOS 15 to iOS 26"
	case ErrNoBlock:
		return "convert it again"
	}
	return "the file is damaged or incomplete: copy or download it again"
}

// expect wants the wire type of the current field.
func (m *message) expect(wire int) bool {
	if m.wire != wire {
		m.fail(ErrMalformed, fmt.Sprintf("field %d of wire type %d, not %d", m.num, m.wire, wire))
	}
	return m.err == nil
}

// inner is the message in the current field.
func (m *message) inner(name string) message {
	m.expect(bytes)
	return m.part(name, m.s)
}

// part is a message whose bytes are s, which ends where m stands.
func (m *message) part(name, s string) message {
	in := message{name: name, buf: s, base: m.base + m.at - len(s), depth: m.depth + 1, b: m.b, err: m.err}
	if in.depth > maxDepth {
		in.fail(ErrTooDeep, fmt.Sprintf("more than %d messages inside each other", maxDepth))
	}
	return in
}

// merge takes over the fault of an inner message.
func (m *message) merge(in *message) {
	if m.err == nil {
		m.err = in.err
	}
}

// text is the current field as a string.
func (m *message) text() string {
	m.expect(bytes)
	return m.s
}

// integer is the current field as a number.
func (m *message) integer() int64 {
	m.expect(varint)
	return int64(m.n)
}

// numbers are the elements of a repeated varint field: packed, or one.
func (m *message) numbers(visit func(n uint64)) {
	if m.wire == varint {
		visit(m.n)
		return
	}
	in := m.inner(m.name)
	for in.err == nil && in.at < len(in.buf) {
		if n := in.varint(); in.err == nil {
			visit(n)
		}
	}
	m.merge(&in)
}

// count is how often a field occurs in a message that is yet to be read. Faults are left for the reading proper.
func (m *message) count(num int) int {
	look := *m
	n := 0
	for look.next() {
		if look.num == num {
			n++
		}
	}
	return n
}

// charge counts memory that is about to be allocated.
func (m *message) charge(n int) bool {
	m.b.left -= int64(n)
	if m.b.left < 0 {
		m.fail(ErrTooLarge, "more parts than a file of this size can have")
	}
	return m.err == nil
}

// writer appends fields.
type writer struct{ buf []byte }

func (w *writer) varint(n uint64) {
	for n >= 0x80 {
		w.buf = append(w.buf, byte(n)|0x80)
		n >>= 7
	}
	w.buf = append(w.buf, byte(n))
}

func (w *writer) tag(num, wire int) { w.varint(uint64(num)<<3 | uint64(wire)) }

// integer writes a number unless it is 0, as proto3 does.
func (w *writer) integer(num int, n int64) {
	if n != 0 {
		w.oneof(num, n)
	}
}

// oneof writes a number even if it is 0: the member of a oneof that is set.
func (w *writer) oneof(num int, n int64) {
	w.tag(num, varint)
	w.varint(uint64(n))
}

// text writes a string unless it is empty.
func (w *writer) text(num int, s string) {
	if s != "" {
		w.element(num, s)
	}
}

// element writes a string even if it is empty: an entry of a list, or of a map.
func (w *writer) element(num int, s string) {
	w.tag(num, bytes)
	w.varint(uint64(len(s)))
	w.buf = append(w.buf, s...)
}

// nest writes a message, even if it is empty.
func (w *writer) nest(num int, fill func()) {
	w.tag(num, bytes)
	start := len(w.buf)
	fill()
	var size [10]byte
	head := writer{size[:0]}
	head.varint(uint64(len(w.buf) - start))
	w.buf = append(w.buf, head.buf...)
	copy(w.buf[start+len(head.buf):], w.buf[start:len(w.buf)-len(head.buf)])
	copy(w.buf[start:], head.buf)
}

// packed writes a list of numbers, unless it is empty.
func (w *writer) packed(num int, list []int64) {
	if len(list) > 0 {
		w.nest(num, func() {
			for _, n := range list {
				w.varint(uint64(n))
			}
		})
	}
}
