package quant

import "math"

// Mode Unique asks numpy for the distinct values, and numpy keeps the element that its sort happens to put first among equals.
// For all numbers but one that makes no difference: −0 and 0 are equal and differ in the file. The sort is not stable, so which
// of them stays follows from all elements; this file repeats the sort.

// zeroOf is the zero that stands in a table of mode Unique for the zeros of a group.
func zeroOf(read func(dst []float32, r, c int), b block) float32 {
	width := b.c1 - b.c0
	values := make([]float32, b.elements())
	var zeros, negative int
	for r := b.r0; r < b.r1; r++ {
		line := values[(r-b.r0)*width:][:width]
		read(line, r, b.c0)
		for _, x := range line {
			if x == 0 {
				zeros++
				negative += int(math.Float32bits(x) >> 31)
			}
		}
	}
	switch negative {
	case 0:
		return 0
	case zeros:
		return float32(math.Copysign(0, -1))
	}
	for _, i := range numpyOrder(values) {
		if values[i] == 0 {
			return values[i]
		}
	}
	return 0
}

// numpyOrder is numpy's argsort(kind="quicksort") for a type without a vector sort, such as the one-field records in which
// numpy.unique compares rows: median of three, and insertion in short runs.
func numpyOrder(v []float32) []int32 {
	order := make([]int32, len(v))
	for i := range order {
		order[i] = int32(i)
	}
	numpySort(v, order)
	return order
}

const numpyShort = 16 // runs up to this length are sorted by insertion

func numpySort(v []float32, o []int32) {
	for len(o) > numpyShort {
		i := numpyPartition(v, o)
		numpySort(v, o[i+1:])
		o = o[:i]
	}
	for i := range o {
		moved, j := o[i], i
		for ; j > 0 && v[moved] < v[o[j-1]]; j-- {
			o[j] = o[j-1]
		}
		o[j] = moved
	}
}

// numpyPartition brings the pivot to its place and returns that.
func numpyPartition(v []float32, o []int32) int {
	last := len(o) - 1
	mid := last / 2
	order := func(a, b int) {
		if v[o[b]] < v[o[a]] {
			o[a], o[b] = o[b], o[a]
		}
	}
	order(0, mid)
	order(mid, last)
	order(0, mid)
	pivot := v[o[mid]]
	o[mid], o[last-1] = o[last-1], o[mid]
	i, j := 0, last-1
	for {
		for i++; v[o[i]] < pivot; i++ {
		}
		for j--; pivot < v[o[j]]; j-- {
		}
		if i >= j {
			break
		}
		o[i], o[j] = o[j], o[i]
	}
	o[i], o[last-1] = o[last-1], o[i]
	return i
}
