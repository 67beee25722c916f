package interp

// grid divides the elements of a tensor into blocks that share a table or a scale: sizes along each dimension that divide the
// tensor's.
type grid struct {
	shape  []int // of the tensor
	blocks []int // number of blocks in each dimension
}

// cursor walks the elements of a tensor in row-major order and knows the block of each.
type cursor struct {
	g     grid
	index []int
	block int // of the current element, row-major among the blocks
}

// at starts at an element.
func (g grid) at(element int) *cursor {
	c := &cursor{g: g, index: make([]int, len(g.shape))}
	for i := len(g.shape) - 1; i >= 0; i-- {
		c.index[i] = element % g.shape[i]
		element /= g.shape[i]
	}
	c.locate()
	return c
}

func (c *cursor) locate() {
	c.block = 0
	for i, x := range c.index {
		c.block = c.block*c.g.blocks[i] + x*c.g.blocks[i]/c.g.shape[i]
	}
}

// next goes to the next element.
func (c *cursor) next() {
	for i := len(c.index) - 1; i >= 0; i-- {
		if c.index[i]++; c.index[i] < c.g.shape[i] {
			break
		}
		c.index[i] = 0
	}
	c.locate()
}

// single reports whether at most one dimension is divided, and which; −1 for none.
func (g grid) single() (axis int, ok bool) {
	axis = -1
	for i, b := range g.blocks {
		if b == 1 {
			continue
		}
		if axis >= 0 {
			return 0, false
		}
		axis = i
	}
	return axis, true
}
