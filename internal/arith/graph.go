package arith

import (
	"math"
	"sync"

	"anelab/internal/half"
	"anelab/internal/kernel"
	"anelab/quant"
)

// Graph is a mode as an interpreter of op graphs uses it: the primitives of the model with the same bits, many values at a time,
// and what graphs have beyond a model's layers. An op is formed in wide arithmetic, rounded to float32, and rounded once to storage.
// Where Add, Sub, Mul and Div are given an operand of one element it stands for all.
type Graph struct {
	Arithmetic
	wide  Arithmetic      // the same operations before the rounding to storage
	store func([]float32) // Store, many values at a time
	sums  sums
}

// sums says how products are added up where the mode leaves it to the kernels.
type sums uint8

const (
	wideSums   sums = iota // float64, canonical structure
	narrowSums             // float32
)

// GraphMode says how the values of a graph are rounded.
type GraphMode uint8

// The modes of graphs.
const (
	GraphExact GraphMode = iota // float32 values, float64 sums
	GraphFast                   // float32 values, the float32 kernels of mode f32
	GraphFP16                   // every value rounded to fp16, overflow is infinite, as on a CPU
	GraphANE                    // mode ane as our emitter assumes it
)

// NewGraph returns a mode; threads 0 means all cores.
func NewGraph(mode GraphMode, threads int) *Graph {
	pool := kernel.SharedPool(threads)
	wide := newExact(pool)
	switch mode {
	case GraphExact:
		return &Graph{Arithmetic: wide, wide: wide, store: func([]float32) {}}
	case GraphFast:
		fast := newF32(pool)
		return &Graph{Arithmetic: fast, wide: fast, store: func([]float32) {}, sums: narrowSums}
	case GraphFP16:
		return &Graph{Arithmetic: NewANE(ANERules{Overflow: OverflowInfinite}, threads), wide: wide, store: roundAllF16}
	case GraphANE:
		return &Graph{Arithmetic: NewANE(ANERules{}, threads), wide: wide, store: saturateAllF16}
	}
	panic("arith: NewGraph: unknown mode")
}

// exact is float32 storage with the sums and the elementary functions of the pinned modes.
type exact struct{ *f32 }

func newExact(pool *kernel.Pool) exact {
	a := newF32(pool)
	a.name = "exact"
	a.exp = func(x float32) float32 { return float32(Exp64(float64(x))) }
	a.tanh = func(x float32) float32 { return float32(Tanh64(float64(x))) }
	return exact{a}
}

func (a exact) Linear(y []float32, w quant.Matrix, x []float32, t int) { a.rounded.Linear(y, w, x, t) }

// roundAllF16 is half.RoundF16 for every element.
func roundAllF16(x []float32) {
	var bits [512]uint16
	for len(x) > 0 {
		n := min(len(x), len(bits))
		kernel.EncodeF16(bits[:n], x[:n])
		kernel.WidenF16(x[:n], bits[:n])
		x = x[n:]
	}
}

// saturateAllF16 is half.RoundF16Saturate for every element.
func saturateAllF16(x []float32) {
	const most, infinite = 0x477fe000, 0x7f800000 // bits of 65504 and of +Inf
	for i, v := range x {
		if bits := math.Float32bits(v) &^ (1 << 31); bits-(most+1) < infinite-(most+1) {
			x[i] = float32(math.Copysign(half.MaxF16, float64(v)))
		}
	}
	roundAllF16(x)
}

// Store implements Arithmetic.
func (g *Graph) Store(x []float32) { g.store(x) }

// Add implements Primitives.
func (g *Graph) Add(y, a, b []float32) {
	switch n := len(y); {
	case len(a) < n:
		p := a[0]
		for i, q := range b[:n] {
			y[i] = p + q
		}
	case len(b) < n:
		q := b[0]
		for i, p := range a[:n] {
			y[i] = p + q
		}
	default:
		a, b = a[:n], b[:n]
		for i := range y {
			y[i] = a[i] + b[i]
		}
	}
	g.store(y)
}

// Sub implements Primitives.
func (g *Graph) Sub(y, a, b []float32) {
	switch n := len(y); {
	case len(a) < n:
		p := a[0]
		for i, q := range b[:n] {
			y[i] = p - q
		}
	case len(b) < n:
		q := b[0]
		for i, p := range a[:n] {
			y[i] = p - q
		}
	default:
		a, b = a[:n], b[:n]
		for i := range y {
			y[i] = a[i] - b[i]
		}
	}
	g.store(y)
}

// Mul implements Primitives.
func (g *Graph) Mul(y, a, b []float32) {
	switch n := len(y); {
	case len(a) < n:
		p := a[0]
		for i, q := range b[:n] {
			y[i] = p * q
		}
	case len(b) < n && b[0] == 1: // most of a mask
		copy(y, a[:n])
	case len(b) < n:
		q := b[0]
		for i, p := range a[:n] {
			y[i] = p * q
		}
	default:
		a, b = a[:n], b[:n]
		for i := range y {
			y[i] = a[i] * b[i]
		}
	}
	g.store(y)
}

// Div implements Primitives.
func (g *Graph) Div(y, a, b []float32) {
	switch n := len(y); {
	case len(a) < n:
		p := a[0]
		for i, q := range b[:n] {
			y[i] = p / q
		}
	case len(b) < n:
		q := b[0]
		for i, p := range a[:n] {
			y[i] = p / q
		}
	default:
		a, b = a[:n], b[:n]
		for i := range y {
			y[i] = a[i] / b[i]
		}
	}
	g.store(y)
}

// Map is y = f(x) in float64, rounded.
func (g *Graph) Map(y, x []float32, f func(float64) float64) {
	for i, v := range x {
		y[i] = float32(f(float64(v)))
	}
	g.store(y)
}

// Linear implements Arithmetic.
func (g *Graph) Linear(y []float32, w quant.Matrix, x []float32, t int) {
	g.wide.Linear(y, w, x, t)
	g.store(y)
}

// GELU implements Primitives. With float32 sums it is the kernel's, as in the f32 mode.
func (g *Graph) GELU(y, x []float32) {
	if g.sums == wideSums {
		g.Arithmetic.GELU(y, x)
		return
	}
	for lo := 0; lo < len(x); lo += len(allOnes) {
		hi := min(lo+len(allOnes), len(x))
		kernel.GELUMul(y[lo:hi], x[lo:hi], allOnes[:hi-lo])
	}
}

var allOnes = func() (ones [256]float32) {
	for i := range ones {
		ones[i] = 1
	}
	return ones
}()

// LinearBias is Linear with bias [Rows] added before the rounding; nil for none.
func (g *Graph) LinearBias(y []float32, w quant.Matrix, x []float32, t int, bias []float32) {
	if bias == nil {
		g.Linear(y, w, x, t)
		return
	}
	g.wide.Linear(y, w, x, t)
	for i := 0; i < len(y); i += len(bias) {
		row := y[i : i+len(bias)]
		for k, b := range bias {
			row[k] += b
		}
	}
	g.store(y)
}

// Affine is what a norm does after normalising; the zero value is nothing.
type Affine struct{ Gamma, Beta []float32 } // [n]; nil for none

// LayerNormRows is LayerNorm of rows of length n with gain and offset, rounded once.
func (g *Graph) LayerNormRows(y, x []float32, n int, eps float64, after Affine) {
	for i := 0; i < len(x); i += n {
		row := y[i : i+n]
		g.wide.LayerNorm(row, x[i:i+n], eps)
		if after.Gamma != nil {
			for k, w := range after.Gamma {
				row[k] *= w
			}
		}
		if after.Beta != nil {
			for k, b := range after.Beta {
				row[k] += b
			}
		}
	}
	g.store(y)
}

// SoftmaxRows is the fused softmax of rows of length n, rounded once.
func (g *Graph) SoftmaxRows(y, x []float32, n int) {
	for i := 0; i < len(x); i += n {
		in, out := x[i:i+n], y[i:i+n]
		m := float64(g.wide.Max(in))
		var l kernel.Lanes
		for k, v := range in {
			out[k] = float32(Exp64(float64(v) - m))
			l[k&7] += float64(out[k])
		}
		sum := l.Sum()
		for k, e := range out {
			out[k] = float32(float64(e) / sum)
		}
	}
	g.store(y)
}

// Sum64 adds in the canonical structure, lane of x[i] = i mod 8, without any rounding to storage.
func Sum64(x []float64) float64 {
	var l kernel.Lanes
	for i, v := range x {
		l[i&7] += v
	}
	return l.Sum()
}

// Matmul is y [t, n] = x [t, k] · w [k, n], each element summed over k in the canonical structure, lane of term i = i mod 8.
func (g *Graph) Matmul(y, x []float32, w quant.Matrix, t int) {
	if len(x) != t*w.Rows() || len(y) != t*w.Cols() {
		panic("arith: Matmul: want x [t, Rows] and y [t, Cols]")
	}
	j := matmuls.Get().(*matmul)
	*j = matmul{y: y, x: x, w: w, t: t, sums: g.sums}
	g.Parallel(j.tiles(), 1, j)
	*j = matmul{}
	matmuls.Put(j)
	g.store(y)
}

var matmuls = sync.Pool{New: func() any { return new(matmul) }}

// matmul is one product; a row of the job is a tile of the result.
type matmul struct {
	y, x []float32
	w    quant.Matrix
	t    int
	sums sums
}

// Sizes of a tile: its sums stay in the second-level cache.
const (
	tileRows = 8
	tileCols = 256
)

// InMemory is a matrix of float32 numbers whose rows start stride apart in data.
type InMemory interface {
	Memory() (data []float32, stride int)
}

// across is how many tiles lie side by side. A matrix that decodes only whole rows is decoded once.
func (j *matmul) across() int {
	if _, ok := j.w.(InMemory); ok {
		return (j.w.Cols() + tileCols - 1) / tileCols
	}
	return 1
}

func (j *matmul) tiles() int { return j.across() * ((j.t + tileRows - 1) / tileRows) }

// Run implements Job.
func (j *matmul) Run(lo, hi int) {
	across, n := j.across(), j.w.Cols()
	for tile := lo; tile < hi; tile++ {
		t0, c0, c1 := tile/across*tileRows, 0, n
		if across > 1 {
			c0 = tile % across * tileCols
			c1 = min(c0+tileCols, n)
		}
		t1 := min(t0+tileRows, j.t)
		if j.sums == narrowSums {
			j.narrowTile(t0, t1, c0, c1)
		} else {
			j.tile(t0, t1, c0, c1)
		}
	}
}

// part is the elements [lo, lo+len(dst)) of row k of the matrix.
func (j *matmul) part(dst []float32, k, lo int) []float32 {
	if m, ok := j.w.(InMemory); ok {
		data, stride := m.Memory()
		return data[k*stride+lo:][:len(dst)]
	}
	j.w.Row(dst, k)
	return dst
}

func (j *matmul) narrowTile(t0, t1, c0, c1 int) {
	depth, n := j.w.Rows(), j.w.Cols()
	buf := rowBuffer(c1 - c0)
	defer rowBuffers.Put(buf)
	for t := t0; t < t1; t++ {
		clear(j.y[t*n+c0 : t*n+c1])
	}
	for k := j.fourRows(t0, t1, c0, c1); k < depth; k++ {
		row := j.part((*buf)[:c1-c0], k, c0)
		for t := t0; t < t1; t++ {
			kernel.Axpy(j.y[t*n+c0:t*n+c1], row, j.x[t*depth+k])
		}
	}
}

// fourRows adds four rows at a time while there are as many, and returns how many rows it has added.
func (j *matmul) fourRows(t0, t1, c0, c1 int) (k int) {
	m, ok := j.w.(InMemory)
	if !ok {
		return 0
	}
	data, stride := m.Memory()
	depth, n := j.w.Rows(), j.w.Cols()
	for ; k+4 <= depth; k += 4 {
		rows := data[k*stride+c0:][:3*stride+c1-c0]
		for t := t0; t < t1; t++ {
			kernel.Axpy4(j.y[t*n+c0:t*n+c1], rows, stride, (*[4]float32)(j.x[t*depth+k:]))
		}
	}
	return k
}

func (j *matmul) tile(t0, t1, c0, c1 int) {
	depth, n, width, rows := j.w.Rows(), j.w.Cols(), c1-c0, t1-t0
	size := rows * width
	buf, wide := rowBuffer(width), wideBuffer(8*size)
	defer rowBuffers.Put(buf)
	defer wideBuffers.Put(wide)
	lanes := (*wide)[:8*size]
	clear(lanes)
	for k := range depth {
		row := j.part((*buf)[:width], k, c0)
		lane := lanes[k&7*size:][:size]
		for t := range rows {
			kernel.Axpy64(lane[t*width:(t+1)*width], row, j.x[(t0+t)*depth+k])
		}
	}
	for i := range size {
		var l kernel.Lanes
		for k := range l {
			l[k] = lanes[k*size+i]
		}
		j.y[(t0+i/width)*n+c0+i%width] = float32(l.Sum())
	}
}
