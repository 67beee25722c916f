package quant

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"anelab/internal/format"
)

// Options say what kind of palette to make.
type Options struct {
	Mode         Mode
	Bits         int  // 1, 2, 3, 4, 6 or 8; 0 in mode Unique: the fewest that hold every group
	Group        int  // channels per table; 0 = one table
	Axis         int  // 0: groups of rows, 1: groups of columns
	Vector       int  // elements per index along the axis, 0 and 1 are the same; more than 1 only in mode KMeans
	ChannelScale bool // divide by the largest magnitude of every channel of the other axis first
}

// Palettize makes the palette that coremltools' palettize_weights makes (spec coreml.md §5): bit for bit in the modes Uniform
// and Unique and for fp16 k-means in groups of at least 10,000 elements; elsewhere, where coremltools asks scikit-learn, with an
// error not above its. float32 weights keep float32 entries; bf16 weights are rounded to fp16 first.
//
// Groups are read one at a time by GOMAXPROCS goroutines; the result does not depend on their number. progress, which may be
// nil, is called after every group, never by two goroutines at once. A cancelled context ends the work with its error.
func Palettize(ctx context.Context, m Matrix, o Options, progress func(done, total int)) (*Palette, error) {
	job, err := newPalettizing(ctx, m, o)
	if err != nil {
		return nil, err
	}
	job.progress = progress
	if err := job.run(ctx); err != nil {
		return nil, err
	}
	return job.out, nil
}

// palettizing is one call of Palettize.
type palettizing struct {
	m        Matrix
	o        Options
	scale    *channelScale
	out      *Palette
	progress func(done, total int)

	mu   sync.Mutex
	done int // groups
}

func newPalettizing(ctx context.Context, m Matrix, o Options) (*palettizing, error) {
	if o.Vector > 1 && o.Mode != KMeans {
		return nil, fmt.Errorf("quant: palette of vectors in mode %s, want kmeans", o.Mode)
	}
	job := &palettizing{m: m, o: o}
	if entryType(m) == F16 {
		job.m = AsF16(m)
	}
	if o.ChannelScale && (o.Axis == 0 || o.Axis == 1) {
		job.scale = newChannelScale(job.m, o.Axis)
	}
	bits := o.Bits
	if bits == 0 && o.Mode == Unique {
		bits = 8
	}
	var err error
	job.out, err = newPalette(m.Rows(), m.Cols(), Encoding{DType: entryType(m), Bits: bits, Group: o.Group, Axis: o.Axis, Vector: o.Vector})
	if err != nil {
		return nil, err
	}
	if job.scale != nil {
		job.out.scale = job.scale.factor
	}
	if bits != o.Bits {
		return job, job.fewestBits(ctx)
	}
	return job, nil
}

// fewestBits chooses the bits of mode Unique.
func (j *palettizing) fewestBits(ctx context.Context) error {
	most := make([]int, j.out.Groups())
	err := parallel(ctx, len(most), func() func(g int) error {
		tally, h := newTally(j.m, j.scale), new(histogram)
		return func(g int) error {
			if err := j.count(tally, h, g); err != nil {
				return err
			}
			most[g] = len(h.values)
			return nil
		}
	})
	if err != nil {
		return err
	}
	e := j.out.encoding
	for e.Bits = 1; e.Bits < 8; e.Bits++ {
		if paletteBits(e.Bits) && slices.Max(most) <= 1<<e.Bits {
			break
		}
	}
	scale := j.out.scale
	j.out, err = newPalette(j.m.Rows(), j.m.Cols(), e)
	j.out.scale = scale
	return err
}

// run makes all groups. What one goroutine takes at a time ends on a byte boundary of the packed indices, so that no byte has
// two writers.
func (j *palettizing) run(ctx context.Context) error {
	unit, groups := j.unit(), j.out.Groups()
	return parallel(ctx, (groups+unit-1)/unit, func() func(i int) error {
		one := j.worker()
		return func(i int) error {
			for g := i * unit; g < min((i+1)*unit, groups); g++ {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := one(g); err != nil {
					return inGroup(err, g, groups)
				}
				j.step(groups)
			}
			return nil
		}
	})
}

// unit is the least number of neighbouring groups whose indices start and end on a byte boundary in every row they are in.
func (j *palettizing) unit() int {
	e := j.out.encoding
	segment := e.Group / e.Vector * e.Bits // bits of one group in one row, or along axis 0 times the columns
	if e.Axis == 0 {
		segment *= j.out.cols
	} else if j.out.cols/e.Vector*e.Bits%8 != 0 {
		return j.out.Groups()
	}
	unit := 1
	for unit*segment%8 != 0 {
		unit *= 2
	}
	return unit
}

func (j *palettizing) step(total int) {
	if j.progress == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.done++
	j.progress(j.done, total)
}

// worker returns what makes one group, with buffers of its own.
func (j *palettizing) worker() func(g int) error {
	tally, h := newTally(j.m, j.scale), new(histogram)
	if j.out.encoding.Vector > 1 {
		v := newVectors(j, tally)
		return v.group
	}
	c := &chooser{mode: j.o.Mode, single: j.out.encoding.DType == F32}
	var index []byte
	return func(g int) error {
		if err := j.count(tally, h, g); err != nil {
			return err
		}
		b := j.block(g)
		table := j.out.Table(g)
		if err := c.choose(table, h, b.elements()); err != nil {
			return err
		}
		if at, found := slices.BinarySearch(h.values, 0); found && j.o.Mode == Unique {
			table[at] = zeroOf(exactReader(j.m, j.scale), b)
		}
		tally.assign(c.index)
		index = grow(index, b.c1-b.c0)
		for r := b.r0; r < b.r1; r++ {
			tally.indices(index, r, b.c0)
			packAt(j.out.packed, r*j.out.cols+b.c0, index, j.out.encoding.Bits)
		}
		return nil
	}
}

func (j *palettizing) count(t tally, h *histogram, g int) error {
	if n := t.count(h, j.block(g)); n > 0 {
		return &format.Error{Got: fmt.Sprintf("%d infinite or undefined %s weights", n, j.out.encoding.DType), Want: "finite weights",
			Fix: "leave masks and other constants that are not weights alone; scale weights beyond 65504 down"}
	}
	return nil
}

// block is where the elements of group g are.
func (j *palettizing) block(g int) block {
	e := j.out.encoding
	if e.Axis == 0 {
		return block{r0: g * e.Group, r1: (g + 1) * e.Group, c1: j.out.cols}
	}
	return block{r1: j.out.rows, c0: g * e.Group, c1: (g + 1) * e.Group}
}

// inGroup says where a fault is.
func inGroup(err error, g, groups int) error {
	var fault *format.Error
	if errors.As(err, &fault) {
		fault.Field = "group " + strconv.Itoa(g) + " of " + strconv.Itoa(groups)
	}
	return err
}

// parallel calls work(0) … work(n−1) on GOMAXPROCS goroutines, each with a worker of its own. After an error no more work is
// begun. Of several errors the one with the lowest number is returned, whoever was first.
func parallel(ctx context.Context, n int, worker func() func(i int) error) error {
	var (
		mu    sync.Mutex
		wg    sync.WaitGroup
		next  int
		at    = n
		first error
	)
	take := func() int {
		mu.Lock()
		defer mu.Unlock()
		if first == nil && ctx.Err() != nil {
			first, at = ctx.Err(), -1
		}
		if first != nil || next == n {
			return n
		}
		next++
		return next - 1
	}
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			work := worker()
			for i := take(); i < n; i = take() {
				if err := work(i); err != nil {
					mu.Lock()
					if i < at {
						first, at = err, i
					}
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return first
}
