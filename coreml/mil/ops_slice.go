package mil

import "fmt"

// slicing takes or replaces a part of a tensor.
var slicing = table{
	{"slice_by_index 15 | x:data begin:int end:int stride?!:int begin_mask?!:bool end_mask?!:bool squeeze_mask?!:bool", inferSlice},
	{"slice_by_size 15 | x:data begin:int size:int", inferSliceBySize},
	{"slice_update 18 | x:data/T update:data/T begin:int end:int stride?!:int begin_mask?!:bool end_mask?!:bool squeeze_mask?!:bool", inferSliceUpdate},
	{"sliding_windows 15 | x:data axis!:int size!:int stride?!:int", inferSlidingWindows},
	{"crop 15 | x:float crop_height!:int crop_width!:int", inferCrop},
}

// Span is the part of one dimension that a slice takes: Count elements from Begin, Step apart. Squeeze drops the dimension.
type Span struct {
	Begin, Step, Count int64
	Squeeze            Dropped
}

// Dropped says that a dimension of which one element is taken is not part of the result.
type Dropped bool

// Slice holds the parameters of slice_by_index and slice_update. Stride and the masks may be nil.
type Slice struct {
	Begin, End, Stride              []int64
	BeginMask, EndMask, SqueezeMask []int64 // 1 where set
}

// Spans resolves a slice of a tensor of known shape: negative begin and end count from the end, masks stand for the whole
// dimension in the direction of the stride, and a squeezed dimension has one element whatever end says.
func (s Slice) Spans(shape []int64) ([]Span, error) {
	spans := make([]Span, len(shape))
	for _, list := range [][]int64{s.Begin, s.End, s.Stride, s.BeginMask, s.EndMask, s.SqueezeMask} {
		if list != nil && len(list) != len(shape) {
			return nil, fmt.Errorf("%d entries for a tensor of rank %d", len(list), len(shape))
		}
	}
	for i, n := range shape {
		span, err := s.span(i, n)
		if err != nil {
			return nil, fmt.Errorf("dimension %d: %w", i, err)
		}
		spans[i] = span
	}
	return spans, nil
}

func (s Slice) span(i int, n int64) (Span, error) {
	step := int64(1)
	if s.Stride != nil {
		step = s.Stride[i]
	}
	begin, end := fromEnd(s.Begin[i], n), fromEnd(s.End[i], n)
	if masked(s.SqueezeMask, i) {
		if begin < 0 || begin >= n {
			return Span{}, fmt.Errorf("element %d of %d", s.Begin[i], n)
		}
		return Span{Begin: begin, Step: 1, Count: 1, Squeeze: true}, nil
	}
	if step == 0 {
		return Span{}, fmt.Errorf("stride 0")
	}
	if step > 0 {
		if masked(s.BeginMask, i) {
			begin = 0
		}
		if masked(s.EndMask, i) {
			end = n
		}
		begin, end = min(max(begin, 0), n), min(end, n)
		return Span{Begin: begin, Step: step, Count: max(0, (end-begin+step-1)/step)}, nil
	}
	if masked(s.BeginMask, i) {
		begin = n - 1
	}
	if masked(s.EndMask, i) {
		end = -1
	}
	begin, end = min(begin, n-1), max(end, -1)
	return Span{Begin: begin, Step: step, Count: max(0, (begin-end-step-1)/-step)}, nil
}

func fromEnd(i, n int64) int64 {
	if i < 0 {
		return i + n
	}
	return i
}

func masked(mask []int64, i int) bool { return mask != nil && mask[i] != 0 }

// sliceParams gathers the parameters; known is false if begin or end are computed at run time.
func (c *call) sliceParams() (s Slice, known bool) {
	s.Stride, _ = c.ints("stride")
	s.BeginMask, _ = c.ints("begin_mask")
	s.EndMask, _ = c.ints("end_mask")
	s.SqueezeMask, _ = c.ints("squeeze_mask")
	var okBegin, okEnd bool
	s.Begin, okBegin = c.ints("begin")
	s.End, okEnd = c.ints("end")
	return s, okBegin && okEnd
}

func inferSlice(c *call) []Type {
	x := c.typeOf("x")
	if !x.Ranked() {
		return []Type{unranked(x.DType)}
	}
	shape, ok := c.sliceShape(x.Shape)
	if !ok {
		return nil
	}
	return []Type{TensorOf(x.DType, shape...)}
}

// sliceShape is the shape of the part that a slice of a tensor of shape x takes.
func (c *call) sliceShape(x []int64) (shape []int64, ok bool) {
	s, known := c.sliceParams()
	for _, m := range [][]int64{s.Begin, s.End, s.Stride, s.BeginMask, s.EndMask, s.SqueezeMask} {
		if m != nil && len(m) != len(x) {
			c.fail(ErrShape, "begin", fmt.Sprintf("begin, end, stride or a mask of %d entries", len(m)), fmt.Sprintf("%d", len(x)))
			return nil, false
		}
	}
	for i, n := range x {
		switch {
		case masked(s.SqueezeMask, i):
			continue
		case masked(s.BeginMask, i) && masked(s.EndMask, i) && s.Stride == nil:
			shape = append(shape, n)
		case !known || n < 0:
			shape = append(shape, Unknown)
		default:
			span, err := s.span(i, n)
			if err != nil {
				c.fail(ErrValue, "begin", fmt.Sprintf("dimension %d: %v", i, err), "")
				return nil, false
			}
			shape = append(shape, span.Count)
		}
	}
	return shape, true
}

// inferSliceUpdate yields the type of x. The update must stretch to the part that is replaced.
func inferSliceUpdate(c *call) []Type {
	x, update := c.typeOf("x"), c.typeOf("update")
	if !x.Ranked() || !update.Ranked() {
		return likeX(c)
	}
	if len(update.Shape) == 0 {
		c.wrongShape("update", "rank 1 or more")
		return nil
	}
	part, ok := c.sliceShape(x.Shape)
	if !ok {
		return nil
	}
	if _, fits := broadcast(part, update.Shape); !fits {
		c.wrongShape("update", "%s, the part that is replaced", ShapeString(part))
	}
	return likeX(c)
}

// inferSliceBySize: a size of −1 takes the rest.
func inferSliceBySize(c *call) []Type {
	x := c.typeOf("x")
	if !x.Ranked() {
		return []Type{x}
	}
	begin, okBegin := c.ints("begin")
	size, okSize := c.ints("size")
	if !okSize {
		return inferSameRank(c)
	}
	if len(size) != len(x.Shape) || okBegin && len(begin) != len(x.Shape) {
		c.wrongShape("size", "%d entries", len(x.Shape))
		return nil
	}
	shape := append([]int64{}, size...)
	for i, n := range size {
		if n != -1 {
			continue
		}
		shape[i] = Unknown
		if okBegin && x.Shape[i] >= 0 {
			shape[i] = x.Shape[i] - fromEnd(begin[i], x.Shape[i])
		}
	}
	return []Type{TensorOf(x.DType, shape...)}
}

// inferSlidingWindows replaces the axis by windows and their elements.
func inferSlidingWindows(c *call) []Type {
	x := c.typeOf("x")
	size, okSize := c.int("size", 0)
	stride, okStride := c.int("stride", 1)
	if !x.Ranked() || !okSize || !okStride || stride < 1 {
		return []Type{unranked(x.DType)}
	}
	axis, ok := c.axis("axis", 0, len(x.Shape))
	if !ok {
		return nil
	}
	windows := x.Shape[axis]
	if windows >= 0 {
		windows = (windows-size)/stride + 1
	}
	shape := append([]int64{}, x.Shape[:axis]...)
	return []Type{TensorOf(x.DType, append(append(shape, windows, size), x.Shape[axis+1:]...)...)}
}

func inferCrop(c *call) []Type {
	x := c.typeOf("x")
	h, okH := c.ints("crop_height")
	w, okW := c.ints("crop_width")
	if !x.Ranked() || len(x.Shape) < 2 || !okH || !okW || len(h) != 2 || len(w) != 2 {
		return inferSameRank(c)
	}
	shape := append([]int64{}, x.Shape...)
	for i, edges := range [][]int64{h, w} {
		if at := len(shape) - 2 + i; shape[at] >= 0 {
			shape[at] -= edges[0] + edges[1]
		}
	}
	return []Type{TensorOf(x.DType, shape...)}
}
