package search

import (
	"cmp"
	"slices"
)

// Objectives of a point, all to be minimised.
const (
	TimePerToken = iota // s
	Resident            // bytes of memory while decoding
	FirstToken          // s to the first token of the request's prompt
	Download            // bytes of files
	NumObjectives
)

// Point is what a layout costs in every respect. Its name is made only for points that are kept.
type Point struct {
	Cost [NumObjectives]float64
	ID   int // position in the stream of candidates
}

// dominates reports whether p is no worse in any respect and better in one.
func (p *Point) dominates(q *Point) bool {
	better := false
	for i := range p.Cost {
		if p.Cost[i] > q.Cost[i] {
			return false
		}
		better = better || p.Cost[i] < q.Cost[i]
	}
	return better
}

// Front returns the points that no other point dominates, fastest first. Of points that are equal in every respect the
// first given stands for all. Points are sorted in place.
func Front(points []Point) []Point {
	slices.SortFunc(points, func(a, b Point) int {
		for i := range a.Cost {
			if c := cmp.Compare(a.Cost[i], b.Cost[i]); c != 0 {
				return c
			}
		}
		return cmp.Compare(a.ID, b.ID)
	})
	f := frontier{}
	for i := range points {
		f.offer(points[i])
	}
	return f.points
}

// frontier takes points in lexicographic order of their costs: whoever comes later cannot dominate what is kept already.
type frontier struct {
	points []Point
	recent int // position of the point that dominated last: neighbours in the order mostly fall to the same one
}

// Whoever fell to a point is mostly followed by others that fall to it, so that point is asked first.
func (f *frontier) offer(p Point) {
	if len(f.points) > 0 && f.beats(f.recent, &p) {
		return
	}
	for i := len(f.points) - 1; i >= 0; i-- {
		if f.beats(i, &p) {
			f.recent = i
			return
		}
	}
	f.points = append(f.points, p)
}

// Equal costs count as beaten: one point stands for all.
func (f *frontier) beats(i int, p *Point) bool {
	kept := &f.points[i]
	return kept.dominates(p) || kept.Cost == p.Cost
}
