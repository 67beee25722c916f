package quant

// Exact k-means on a line, as the converter's kmeans1d computes it.
//
// Sorted values are cut into k runs so that the sum of squared distances to the runs' means is least. The dynamic programme of
// Grønlund et al. (2017) fills one row per cluster, and SMAWK finds a row's cuts in linear time because the cost of a run is
// concave Monge. Where the rounding of a cost decides between two cuts, the order of comparisons decides the table, so this file
// makes the same comparisons of the same float64 numbers (spec coreml.md §5). [cutter.certified] finds the same cuts several
// times faster where rounding cannot decide, and says so when it can.

// histogram is a group of weights as k-means sees it: what values there are and how often.
type histogram struct {
	values []float64 // [n], ascending, distinct
	counts []float64 // [n], whole numbers
}

// sums are prefix sums over a histogram: w[i], wx[i] and wxx[i] add up the first i values.
type sums struct {
	w, wx, wxx []float64 // [n+1]
}

// reset fills the sums in the order of kmeans1d.
func (s *sums) reset(h *histogram) {
	n := len(h.values)
	s.w, s.wx, s.wxx = grow(s.w, n+1), grow(s.wx, n+1), grow(s.wxx, n+1)
	s.w[0], s.wx[0], s.wxx[0] = 0, 0, 0
	for i, x := range h.values {
		wx := float64(h.counts[i] * x)
		s.w[i+1] = s.w[i] + h.counts[i]
		s.wx[i+1] = s.wx[i] + wx
		s.wxx[i+1] = s.wxx[i] + float64(x*wx)
	}
}

// cost is the squared error of one entry for values lo … hi−1, with kmeans1d's roundings.
func (s *sums) cost(lo, hi int) float64 {
	w, wx := s.w[hi]-s.w[lo], s.wx[hi]-s.wx[lo]
	mean := wx / w
	return s.wxx[hi] - s.wxx[lo] + float64(float64(mean*mean)*w) - float64((mean+mean)*wx)
}

// cutter finds optimal cuts. It keeps its buffers from group to group.
type cutter struct {
	sums
	layers layers
	path   path
}

// cuts returns the starts of at most k clusters, ascending; cluster c ends where c+1 starts, the last at the end. A cluster may
// be empty only where kmeans1d leaves it so.
func (c *cutter) cuts(h *histogram, k int) []int {
	c.reset(h)
	n := len(h.values)
	k = min(k, n)
	if worthwhile(n, k) {
		if starts, ok := c.certified(k); ok {
			return starts
		}
	}
	return c.layers.cuts(&c.sums, n, k)
}

// anyCuts is cuts where kmeans1d's choice between equals does not matter.
func (c *cutter) anyCuts(h *histogram, k int) []int {
	c.reset(h)
	n := len(h.values)
	k = min(k, n)
	if worthwhile(n, k) {
		if starts, _, ok := c.shortest(k); ok {
			return starts
		}
	}
	return c.layers.cuts(&c.sums, n, k)
}

// worthwhile says whether a shortest path is likely to have k clusters for some penalty, and one row per cluster would be work.
func worthwhile(n, k int) bool { return k > 1 && n > 4*k }

// means are the entries of the clusters: running means in ascending order, as kmeans1d takes them, which differ from the
// exact means in the last bits of a float64.
func (c *cutter) means(h *histogram, starts []int) []float64 {
	out := make([]float64, len(starts))
	for k, lo := range starts {
		hi := len(h.values)
		if k+1 < len(starts) {
			hi = starts[k+1]
		}
		mean := 0.0
		for i := lo; i < hi; i++ {
			mean += float64((c.w[i+1]-c.w[i])*(h.values[i]-mean)) / (c.w[i+1] - c.w[lo])
		}
		out[k] = mean
	}
	return out
}

// layers is the dynamic programme over the number of clusters.
type layers struct {
	*sums
	n         int
	last, now []float64 // [n]: least cost of the first i+1 values in one cluster fewer, and in this many
	argmin    []int32   // [n]: where the last cluster of row i starts
	starts    []int32   // [k, n]: argmin of every layer
	place     []int32   // [n]: a column's place among the survivors
	survivors []int32   // of all levels of the recursion, one after the other
}

func (l *layers) cuts(s *sums, n, k int) []int {
	l.sums, l.n = s, n
	l.last, l.now = grow(l.last, n), grow(l.now, n)
	l.starts, l.place = grow(l.starts, k*n), grow(l.place, n)
	for i := range n {
		l.last[i], l.starts[i] = s.cost(0, i+1), 0
	}
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i)
	}
	for layer := 1; layer < k; layer++ {
		l.argmin = l.starts[layer*n : (layer+1)*n]
		l.survivors = l.survivors[:0]
		l.minima(0, all)
		for i, j := range l.argmin {
			l.now[i] = l.at(i, int(j))
		}
		l.last, l.now = l.now, l.last
	}
	return l.backtrack(k)
}

// at is the cost of values 0 … i when the last cluster starts at j: an entry of the totally monotone matrix.
func (l *layers) at(i, j int) float64 {
	if j == 0 || j > i { // an empty last cluster
		if j > i {
			return l.last[i]
		}
		return l.last[i] + l.cost(0, i+1)
	}
	return l.last[j-1] + l.cost(j, i+1)
}

// minima writes the best column of every row of one level of SMAWK; level v holds every 2^v-th row. Level 0 has all columns.
func (l *layers) minima(level uint, columns []int32) {
	rows := l.n >> level
	if rows == 0 {
		return
	}
	base := len(l.survivors)
	for _, column := range columns { // drop columns that cannot be a minimum
		for len(l.survivors) > base {
			row, back := rowOf(len(l.survivors)-base-1, level), l.survivors[len(l.survivors)-1]
			if l.at(row, int(column)) >= l.at(row, int(back)) {
				break
			}
			l.survivors = l.survivors[:len(l.survivors)-1]
		}
		if len(l.survivors)-base < rows {
			l.survivors = append(l.survivors, column)
		}
	}
	end := len(l.survivors)
	l.minima(level+1, l.survivors[base:end])
	l.survivors = l.survivors[:end]
	l.interpolate(level, l.survivors[base:end])
}

// interpolate finds the minima of the even rows of a level between those of its odd rows.
func (l *layers) interpolate(level uint, columns []int32) {
	for i, column := range columns {
		l.place[column] = int32(i)
	}
	rows, start := l.n>>level, 0
	for r := 0; r < rows; r += 2 {
		row, stop := rowOf(r, level), len(columns)-1
		if r < rows-1 {
			stop = int(l.place[l.argmin[rowOf(r+1, level)]])
		}
		best := columns[start]
		least := l.at(row, int(best))
		for c := start + 1; c <= stop; c++ {
			if v := l.at(row, int(columns[c])); v < least {
				best, least = columns[c], v
			}
		}
		l.argmin[row] = best
		start = stop
	}
}

// rowOf is row r of a level: the odd rows of the level below.
func rowOf(r int, level uint) int { return (r+1)<<level - 1 }

// backtrack follows the last cluster of the last value down to the first. Clusters that it never reaches stay empty at 0.
func (l *layers) backtrack(k int) []int {
	starts := make([]int, k)
	for layer, end := k-1, l.n; end > 0 && layer >= 0; layer-- {
		end = int(l.starts[layer*l.n+end-1])
		starts[layer] = end
	}
	return starts
}

// grow returns a slice of n elements, the old one where it is long enough.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
