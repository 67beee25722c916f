package tokenizer

import "math/bits"

// merger joins the symbols of one segment. Both ways it knows choose the pair of lowest rank, the leftmost of equals, until none is left.
type merger struct {
	ids        []int32  // of the symbols; −1 = joined to the one before
	next, prev []int32  // neighbours of a symbol; −1 = none
	pair       []merged // what a symbol and the next one merge to
	queue      queue
}

// shortSegment is where looking at every pair again costs less than a queue.
const shortSegment = 24

// merge returns the ids that symbols become. The result is valid until the next call and may share their memory.
func (m *merger) merge(pairs *pairTable, symbols []int32) []int32 {
	if len(symbols) <= shortSegment {
		return mergeShort(pairs, symbols)
	}
	return m.mergeLong(pairs, symbols)
}

// mergeShort looks for the best pair and joins it, again and again.
func mergeShort(pairs *pairTable, ids []int32) []int32 {
	var found [shortSegment]merged
	for i := 0; i+1 < len(ids); i++ {
		found[i] = pairs.find(ids[i], ids[i+1])
	}
	for n := len(ids); n > 1; n-- {
		best := 0
		for i := 1; i < n-1; i++ {
			if found[i].rank < found[best].rank {
				best = i
			}
		}
		if found[best].rank == none {
			break
		}
		ids[best] = found[best].id
		copy(ids[best+1:], ids[best+2:n])
		copy(found[best:], found[best+1:n-1])
		ids = ids[:n-1]
		if best > 0 {
			found[best-1] = pairs.find(ids[best-1], ids[best])
		}
		if best+1 < n-1 {
			found[best] = pairs.find(ids[best], ids[best+1])
		}
	}
	return ids
}

// mergeLong keeps the pairs in a queue over a linked list of symbols.
func (m *merger) mergeLong(pairs *pairTable, symbols []int32) []int32 {
	n := len(symbols)
	m.ids = append(m.ids[:0], symbols...)
	m.next, m.prev, m.pair = grow(m.next, n), grow(m.prev, n), grow(m.pair, n)
	for i := range n {
		m.next[i], m.prev[i] = int32(i+1), int32(i-1)
	}
	m.next[n-1] = -1
	m.queue.reset()
	for i := range n {
		if m.find(pairs, int32(i)) {
			m.queue.add(m.order(int32(i)))
		}
	}
	for m.queue.turn(m.stale) {
		for first, ok := m.queue.pop(); ok; first, ok = m.queue.pop() {
			if !m.stale(first) {
				m.join(pairs, int32(uint32(first)))
			}
		}
	}
	out := symbols[:0]
	for i := int32(0); i >= 0; i = m.next[i] {
		out = append(out, m.ids[i])
	}
	return out
}

// find looks up what the symbol at i and the next one merge to.
func (m *merger) find(pairs *pairTable, i int32) bool {
	m.pair[i] = merged{rank: none}
	if m.next[i] >= 0 {
		m.pair[i] = pairs.find(m.ids[i], m.ids[m.next[i]])
	}
	return m.pair[i].rank != none
}

// order is the pair at i as the queue compares it: rank<<32 | position.
func (m *merger) order(i int32) uint64 { return uint64(m.pair[i].rank)<<32 | uint64(i) }

// stale reports whether a symbol of a queued pair was joined to another since.
func (m *merger) stale(order uint64) bool {
	at := int32(uint32(order))
	return m.ids[at] < 0 || m.pair[at].rank != int32(order>>32)
}

// join replaces the pair at left and finds the two pairs that this makes.
func (m *merger) join(pairs *pairTable, left int32) {
	right := m.next[left]
	m.ids[left], m.ids[right] = m.pair[left].id, -1
	m.next[left] = m.next[right]
	if after := m.next[left]; after >= 0 {
		m.prev[after] = left
	}
	if m.find(pairs, left) {
		m.queue.add(m.order(left))
	}
	if before := m.prev[left]; before >= 0 && m.find(pairs, before) {
		m.queue.add(m.order(before))
	}
}

// grow returns a slice of n elements, with old memory where that is enough.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, 1<<bits.Len(uint(n)))
	}
	return s[:n]
}
