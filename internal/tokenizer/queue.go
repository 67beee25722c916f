package tokenizer

import "slices"

// queue hands out numbers in ascending order. Merging asks for few orders of arrival: most pairs are there from the start, and a join
// mostly makes pairs that come after all of them. So what arrives behind the end of the sorted run waits unsorted for its turn, and only
// what belongs in between goes through a heap, which stays small. Most pairs that wait are gone by then: the next join takes their
// symbols. What is left of them has mostly arrived in order, and sorting it is a look at each.
type queue struct {
	run   []uint64 // ascending, from head on
	head  int
	later []uint64 // all above the last of run
	heap  []uint64
}

func (q *queue) reset() {
	q.run, q.head, q.later, q.heap = q.run[:0], 0, q.later[:0], q.heap[:0]
}

func (q *queue) add(x uint64) {
	if len(q.run) == 0 || x > q.run[len(q.run)-1] {
		q.later = append(q.later, x)
		return
	}
	q.heap = append(q.heap, x)
	i := len(q.heap) - 1
	for i > 0 && x < q.heap[(i-1)/fan] {
		q.heap[i] = q.heap[(i-1)/fan]
		i = (i - 1) / fan
	}
	q.heap[i] = x
}

// pop removes the least number of the run and the heap.
func (q *queue) pop() (x uint64, ok bool) {
	if q.head == len(q.run) && len(q.heap) == 0 {
		return 0, false
	}
	if q.head < len(q.run) && (len(q.heap) == 0 || q.run[q.head] <= q.heap[0]) {
		q.head++
		return q.run[q.head-1], true
	}
	x, last := q.heap[0], len(q.heap)-1
	q.heap[0] = q.heap[last]
	q.heap = q.heap[:last]
	q.sink()
	return x, true
}

// turn makes a run of what waited, without what is stale by now, and reports whether there is any.
func (q *queue) turn(stale func(uint64) bool) bool {
	waited := slices.DeleteFunc(q.later, stale)
	q.run, q.later, q.head = waited, q.run[:0], 0
	slices.Sort(waited)
	return len(waited) > 0
}

// fan is the number of children of a node of the heap: four numbers lie in half a cache line.
const fan = 4

// sink brings the first number of the heap to its place.
func (q *queue) sink() {
	if len(q.heap) == 0 {
		return
	}
	x, i := q.heap[0], 0
	for first := 1; first < len(q.heap); first = fan*i + 1 {
		least := first
		for c := first + 1; c < min(first+fan, len(q.heap)); c++ {
			if q.heap[c] < q.heap[least] {
				least = c
			}
		}
		if x <= q.heap[least] {
			break
		}
		q.heap[i] = q.heap[least]
		i = least
	}
	q.heap[i] = x
}
