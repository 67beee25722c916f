package quant

import (
	"math"
	"math/rand/v2"
)

// vectors makes palettes whose entries are several elements along the axis. Least squares in more than one dimension has no
// exact method that is fast; this is Lloyd's iteration from several k-means++ starts, run until nothing moves. coremltools asks
// scikit-learn for one start and stops early.
type vectors struct {
	job    *palettizing
	tally  tally
	points []float64 // [points, v]
	best   clustering
	trial  clustering
	random *rand.Rand
	line   []float32

	far, nearer, nearest []float64 // squared distance of every point from its centre: so far, with a candidate, with the best one
}

// clustering is one answer.
type clustering struct {
	centres []float64 // [k, v]
	index   []int32   // [points]
	error   float64   // sum of squared distances
}

const (
	vectorStarts     = 8   // beginnings per group, of which the best result counts
	vectorRounds     = 300 // at most so many iterations each
	vectorCandidates = 4   // points tried for every first centre
)

func newVectors(j *palettizing, t tally) *vectors { return &vectors{job: j, tally: t} }

// group makes the table and the indices of one group.
func (v *vectors) group(g int) error {
	if err := v.job.count(v.tally, new(histogram), g); err != nil {
		return err
	}
	v.read(v.job.block(g))
	table := v.job.out.Table(g)
	v.random = rand.New(rand.NewPCG(1, uint64(g))) // the same whoever does the work
	v.best.error = math.Inf(1)
	for range vectorStarts {
		v.start(len(table) / v.width())
		v.iterate()
		if v.trial.error < v.best.error {
			v.best, v.trial = v.trial, v.best
		}
	}
	c := chooser{single: v.job.out.encoding.DType == F32}
	for i, x := range v.best.centres {
		table[i] = c.round(x)
		v.best.centres[i] = float64(table[i])
	}
	v.best.assign(v.points, v.width())
	v.pack(v.job.block(g))
	return nil
}

func (v *vectors) width() int { return v.job.out.encoding.Vector }

// read gathers the points of a group in the order of their indices.
func (v *vectors) read(b block) {
	n := v.width()
	v.points, v.line = grow(v.points, b.elements()), grow(v.line, b.c1-b.c0)
	for r := b.r0; r < b.r1; r++ {
		v.tally.row(v.line, r, b.c0)
		for c, x := range v.line {
			at := (r-b.r0)*len(v.line) + c // axis 1: the elements of a point are neighbours
			if v.job.o.Axis == 0 {
				at = ((r-b.r0)/n*len(v.line)+c)*n + (r-b.r0)%n
			}
			v.points[at] = float64(x)
		}
	}
}

// pack writes the indices of the best clustering where group b has them.
func (v *vectors) pack(b block) {
	n, p := v.width(), v.job.out
	wide, across := p.cols, b.c1-b.c0 // indices in a row of the matrix and of the group
	rows, row, column := (b.r1-b.r0)/n, b.r0/n, b.c0
	if v.job.o.Axis == 1 {
		wide, across, rows, row, column = p.cols/n, across/n, b.r1-b.r0, b.r0, b.c0/n
	}
	line := make([]byte, across)
	for r := range rows {
		for c := range line {
			line[c] = byte(v.best.index[r*across+c])
		}
		packAt(p.packed, (row+r)*wide+column, line, p.encoding.Bits)
	}
}

// start picks k points as centres: of a few candidates, drawn with a chance that grows with the squared distance from the
// centres before, the one that leaves the least error.
func (v *vectors) start(k int) {
	n := v.width()
	points := len(v.points) / n
	v.trial.centres, v.trial.index = grow(v.trial.centres, k*n), grow(v.trial.index, points)
	v.far, v.nearer, v.nearest = grow(v.far, points), grow(v.nearer, points), grow(v.nearest, points)
	for i := range v.far {
		v.far[i] = 1 // the first is any point
	}
	left := float64(points)
	for c := range k {
		least := math.Inf(1)
		for range vectorCandidates {
			pick := v.draw(left)
			centre, sum := v.points[pick*n:(pick+1)*n], 0.0
			for i := range v.nearer {
				v.nearer[i] = distance(v.points[i*n:(i+1)*n], centre)
				if c > 0 {
					v.nearer[i] = min(v.nearer[i], v.far[i])
				}
				sum += v.nearer[i]
			}
			if sum < least {
				least = sum
				copy(v.trial.centres[c*n:], centre)
				v.nearest, v.nearer = v.nearer, v.nearest
			}
		}
		left = least
		v.far, v.nearest = v.nearest, v.far
	}
}

// draw is a point with a chance in proportion to far, which adds up to sum.
func (v *vectors) draw(sum float64) int {
	left := v.random.Float64() * sum
	for i, d := range v.far {
		if left < d {
			return i
		}
		left -= d
	}
	return len(v.far) - 1
}

// iterate moves centres to the means of their points until no point changes its centre.
func (v *vectors) iterate() {
	n := v.width()
	for range vectorRounds {
		if !v.trial.assign(v.points, n) {
			return
		}
		counts, sums := make([]float64, len(v.trial.centres)/n), make([]float64, len(v.trial.centres))
		for i, c := range v.trial.index {
			counts[c]++
			for d := range n {
				sums[int(c)*n+d] += v.points[i*n+d]
			}
		}
		for i := range sums {
			if w := counts[i/n]; w > 0 {
				v.trial.centres[i] = sums[i] / w
			}
		}
	}
}

// assign gives every point its nearest centre and reports whether one has changed.
func (c *clustering) assign(points []float64, n int) (changed bool) {
	was := c.error
	c.error = 0
	for i := range c.index {
		point := points[i*n : (i+1)*n]
		best, least := int32(0), math.Inf(1)
		for k := range len(c.centres) / n {
			if d := distance(point, c.centres[k*n:(k+1)*n]); d < least {
				best, least = int32(k), d
			}
		}
		changed = changed || c.index[i] != best
		c.index[i] = best
		c.error += least
	}
	return changed || was != c.error
}

func distance(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		d := x - b[i]
		sum += float64(d * d)
	}
	return sum
}
