//go:build arm64 && !purego

package kernel

import "unsafe"

// cpuPaths is NEON, which every arm64 has.
func cpuPaths() []path { return []path{neon} }

// gemv4Fast multiplies a pair of groups with input i.
func gemv4Fast(y []float32, p pair, i int) bool {
	if active != neon {
		return false
	}
	for k, g := range p.groups {
		packed, table := p.m.group(g)
		gemv4NEON(&y[k*GroupRows], packed, table, &p.x.data[i*p.x.rowBytes()], p.x.blocks)
	}
	return true
}

// y[32] = a group, its table, an input of that many blocks.
//
//go:noescape
func gemv4NEON(y *float32, packed, table, x *byte, blocks int)

// decodeFast decodes a multiple of 16 numbers.
func decodeFast(f format, dst []float32, src []byte) bool {
	if active != neon {
		return false
	}
	switch f {
	case decodeBF16:
		decodeBF16NEON(&dst[0], &src[0], len(dst))
	case decodeF16:
		decodeF16NEON(&dst[0], &src[0], len(dst))
	default:
		decodeBF16AsF16NEON(&dst[0], &src[0], len(dst))
	}
	return true
}

//go:noescape
func decodeBF16NEON(dst *float32, src *byte, n int)

//go:noescape
func decodeF16NEON(dst *float32, src *byte, n int)

//go:noescape
func decodeBF16AsF16NEON(dst *float32, src *byte, n int)

func widenFast(f format, dst []float32, src []uint16) bool {
	return decodeFast(f, dst, unsafe.Slice((*byte)(unsafe.Pointer(&src[0])), 2*len(src)))
}

func encodeF16Fast(dst []uint16, src []float32) bool {
	if active != neon {
		return false
	}
	encodeF16NEON(&dst[0], &src[0], len(dst))
	return true
}

//go:noescape
func encodeF16NEON(dst *uint16, src *float32, n int)

// pause lets the other threads of a core go ahead while a loop waits.
//
//go:noescape
func pause()
