package swa

// Index holds, for every complete block of positions, the least and the greatest value of every key channel: enough to bound a
// query's scores over the block without reading it (Quest).
type Index struct {
	block  int
	shape  Shape
	lo, hi []float32 // [blocks, K, d]
}

// Indexed is a store whose key views carry an index.
type Indexed struct {
	Store
	index *Index
}

// NewIndexed gives a store that keeps every row an index over blocks of the given number of positions.
func NewIndexed(s Store, shape Shape, block, context int) *Indexed {
	n := (context + block - 1) / block * shape.Width()
	return &Indexed{Store: s, index: &Index{block: block, shape: shape, lo: make([]float32, n), hi: make([]float32, n)}}
}

// Stage places the rows and indexes the blocks that they complete. A block's entry is the same for every query behind it.
func (s *Indexed) Stage(first int, k, v []float32) {
	s.Store.Stage(first, k, v)
	keys, x := s.Store.Keys(), s.index
	next := first + len(k)/x.shape.Width()
	for b := first / x.block; (b+1)*x.block <= next; b++ {
		x.add(keys, b)
	}
}

// Keys views the rows and their index.
func (s *Indexed) Keys() View {
	v := s.Store.Keys()
	v.index = s.index
	return v
}

func (s *Indexed) resumable(p int) error { return Resumable(s.Store, p) }

// add indexes block b.
func (x *Index) add(keys View, b int) {
	d := x.shape.HeadDim
	row := make([]float32, d)
	for head := range x.shape.KVHeads {
		lo, hi := x.Bounds(b, head)
		for p := b * x.block; p < (b+1)*x.block; p++ {
			keys.Head(head).Load(row, p, 1)
			if p == b*x.block {
				copy(lo, row)
				copy(hi, row)
			}
			for c, v := range row {
				lo[c], hi[c] = min(lo[c], v), max(hi[c], v)
			}
		}
	}
}

// Block is the number of positions in a block.
func (x *Index) Block() int { return x.block }

// Bounds are the least and greatest values [d] of a head's key channels over complete block b.
func (x *Index) Bounds(b, head int) (lo, hi []float32) {
	d := x.shape.HeadDim
	at := (b*x.shape.KVHeads + head) * d
	return x.lo[at : at+d], x.hi[at : at+d]
}
