package interp

import (
	"anelab/coreml/mil"
	"anelab/quant"
)

// constant makes the value of a literal. Floating tensors of two or more elements stay where they are.
func constant(v *mil.Value) (*value, error) {
	c := &value{dtype: v.Type.DType, shape: shapeOf(v.Type.Shape), literal: v}
	form, ok := map[mil.DType]quant.DType{mil.Float16: quant.F16, mil.BFloat16: quant.BF16, mil.Float32: quant.F32}[v.Type.DType]
	if n, _ := v.Type.Count(); !ok || v.Type.Kind != mil.Tensor || n < 2 {
		return c, nil
	}
	data, err := v.Bytes()
	if err != nil {
		return nil, err
	}
	c.weight = &weight{source: &stored{form, data}}
	return c, nil
}

// compressed holds the constexpr ops. Their results are weights, and masks of sparse weights.
var compressed = family{
	"constexpr_lut_to_dense":                 lutToDense,
	"constexpr_blockwise_shift_scale":        blockwise,
	"constexpr_affine_dequantize":            affine,
	"constexpr_cast":                         constexprCast,
	"constexpr_sparse_to_dense":              sparseToDense,
	"constexpr_lut_to_sparse":                lutToSparse,
	"constexpr_sparse_blockwise_shift_scale": sparseBlockwise,
}

// yieldWeight ends a constexpr op with a constant. Integers, which another constexpr op will scale, are decoded.
func (c *call) yieldWeight(s source, shape []int) {
	if d := c.declared(len(c.results)).DType; !d.IsFloat() {
		decoded, out := make([]float32, s.count()), newArray(d, shape...)
		s.read(decoded, 0)
		for i, x := range decoded {
			out.ints[i] = int32(x)
		}
		c.yield(out)
		return
	}
	c.yieldValue(&value{dtype: c.declared(len(c.results)).DType, shape: shape, weight: &weight{source: s}})
}

// packed is an integer operand in its packed form; a result of another constexpr is packed again.
func (c *call) packed(param string) (packed []byte, t mil.Type) {
	v := c.value(param)
	if v == nil {
		return nil, mil.Type{}
	}
	t = v.typ()
	var err error
	if v.literal != nil {
		packed, err = v.literal.Bytes()
		c.fail(err)
		return packed, t
	}
	var codes []int64
	for _, x := range c.array(param).flatInts() {
		codes = append(codes, int64(x))
	}
	return mil.Pack(t.DType, codes), t
}

// floats is an operand as float32 numbers, integers included; nil if it is absent.
func (c *call) floats(param string) []float32 {
	if c.value(param) == nil {
		return nil
	}
	return toFloats(c.array(param))
}

func toFloats(a *array) []float32 {
	if a.isFloat() {
		return a.flat()
	}
	x := make([]float32, a.count())
	for i, n := range a.flatInts() {
		x[i] = float32(n)
	}
	return x
}

func lutToDense(c *call) {
	p := &palette{dtype: c.value("lut").dtype, tables: c.floats("lut"), vector: 1}
	packed, t := c.packed("indices")
	p.indices, p.bits = packed, t.DType.Bits()
	if c.value("shape") != nil { // one table, indices as bytes: until specification version 8
		p.shape = c.ints("shape", nil)
		p.bits = 0
		for 1<<p.bits < len(p.tables) {
			p.bits++
		}
		p.blocks = ones(len(p.shape))
	} else {
		p.setTables(shapeOf(t.Shape), c.value("lut").shape)
		p.vectorAxis = c.axis("vector_axis", 0, max(1, len(p.shape)))
	}
	c.yieldWeight(p, stretched(p.shape, p.vectorAxis, p.vector))
}

// setTables splits the shape of tables, [groups…, entries, vector].
func (p *palette) setTables(indices, tables []int) {
	rank := len(indices)
	p.grid = grid{shape: indices, blocks: tables[:rank]}
	p.vector = tables[rank+1]
}

func ones(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = 1
	}
	return s
}

// numbers is an operand as elements to be scaled.
func (c *call) numbers(param string) numbers {
	v := c.value(param)
	if v.literal == nil {
		return numbers{dtype: v.dtype, floats: c.floats(param)}
	}
	packed, t := c.packed(param)
	return numbers{dtype: t.DType, packed: packed}
}

// scaledType is the type that products with scales are rounded to: where op results are not rounded, these are not either.
func (c *call) scaledType() mil.DType {
	if c.Precision == Exact || c.Precision == Fast {
		return mil.Float32
	}
	return c.value("scale").dtype
}

func blockwise(c *call) {
	shape := c.value("data").shape
	s := &scaled{grid: grid{shape, c.value("scale").shape}, data: c.numbers("data"), dtype: c.scaledType(), scale: c.floats("scale")}
	s.offset = c.floats("offset")
	c.yieldWeight(s, shape)
}

// affine: scale and zero point are scalars, or have one entry for each index of the axis.
func affine(c *call) {
	shape := c.value("quantized_data").shape
	blocks := ones(len(shape))
	axis := c.axis("axis", 0, max(1, len(shape)))
	n := max(c.array("scale").count(), c.array("zero_point").count())
	if n > 1 {
		blocks[axis] = n
	}
	s := &scaled{grid: grid{shape, blocks}, data: c.numbers("quantized_data"), dtype: c.scaledType()}
	s.scale, s.offset = repeated(c.floats("scale"), n), repeated(c.floats("zero_point"), n)
	c.yieldWeight(s, shape)
}

// repeated is x, or its one element n times.
func repeated(x []float32, n int) []float32 {
	if len(x) == n {
		return x
	}
	out := make([]float32, n)
	for i := range out {
		out[i] = x[0]
	}
	return out
}

func constexprCast(c *call) {
	x := toFloats(c.array("source_val"))
	rounded := append([]float32{}, x...)
	c.graph().Store(rounded)
	c.yieldWeight(listed(rounded), c.value("source_val").shape)
}

// bits are the elements of a mask: of a tensor of bits, or packed in bytes for a shape.
func (c *call) bits(param string, shape []int) []byte {
	packed, _ := c.packed(param)
	mask := make([]byte, count(shape))
	if len(packed)*8 < len(mask) { // checked when the program was made: bits of a tensor are packed
		c.failValue(param, "a mask that is too short", "")
		return mask
	}
	quant.Unpack(mask, packed, 1, 0)
	return mask
}

func sparseToDense(c *call) {
	shape := c.ints("shape", nil)
	if shape == nil {
		shape = c.value("mask").shape
	}
	mask, values := c.bits("mask", shape), c.floats("nonzero_data")
	if total := sum(mask); total != len(values) {
		c.failValue("nonzero_data", plural(len(values), "value"), plural(total, "value")+", one for each bit that is set in the mask")
		return
	}
	dense, k := make([]float32, len(mask)), 0
	for i, bit := range mask {
		if bit != 0 {
			dense[i] = values[k]
			k++
		}
	}
	c.yieldWeight(listed(dense), shape)
}

func sum(bits []byte) (n int) {
	for _, b := range bits {
		n += int(b)
	}
	return n
}

// ranks numbers the bits that are set.
func ranks(mask []byte) []int {
	r, n := make([]int, len(mask)), 0
	for i, bit := range mask {
		r[i] = n
		n += int(bit)
	}
	return r
}

// lutToSparse yields the mask, stretched where entries are vectors, and the values of its set bits.
func lutToSparse(c *call) {
	shape := c.value("indices_mask").shape
	p := &palette{tables: c.floats("lut")}
	p.setTables(shape, c.value("lut").shape)
	p.vectorAxis = c.axis("vector_axis", 0, max(1, len(shape)))
	mask, indices := c.bits("indices_mask", shape), c.array("indices_nonzero_data").flatInts()
	if total := sum(mask); total != len(indices) {
		c.failValue("indices_nonzero_data", plural(len(indices), "index"), plural(total, "index")+", one for each bit that is set in the mask")
		return
	}
	out := stretched(shape, p.vectorAxis, p.vector)
	element, rank := grid{shape: out, blocks: out}.at(0), ranks(mask)
	stretchedMask, values := newArray(c.declared(0).DType, out...), []float32{}
	for i := range stretchedMask.ints {
		at := 0
		for axis, x := range element.index {
			if axis == p.vectorAxis {
				x /= p.vector
			}
			at = at*shape[axis] + x
		}
		if mask[at] != 0 {
			entry := p.grid.at(at).block<<bitsFor(c.value("lut").shape[len(shape)]) + int(indices[rank[at]])
			values = append(values, p.tables[entry*p.vector+element.index[p.vectorAxis]%p.vector])
			stretchedMask.ints[i] = 1
		}
		element.next()
	}
	c.yield(stretchedMask)
	c.yieldWeight(listed(values), []int{len(values)})
}

// bitsFor is the number of bits that count n entries, a power of two.
func bitsFor(n int) int {
	b := 0
	for 1<<b < n {
		b++
	}
	return b
}

// sparseBlockwise scales the values of a sparse constant by the block that each lies in.
func sparseBlockwise(c *call) {
	shape := c.value("data_mask").shape
	s := &scaled{grid: grid{shape, c.value("scale").shape}, dtype: c.scaledType(), scale: c.floats("scale")}
	mask, values, offset := c.bits("data_mask", shape), c.floats("nonzero_data"), c.floats("offset")
	element, out := s.grid.at(0), make([]float32, 0, len(values))
	for _, bit := range mask {
		if k := len(out); bit != 0 && k < len(values) {
			x := values[k]
			if offset != nil {
				x -= offset[element.block]
			}
			out = append(out, s.narrow(x*s.scale[element.block]))
		}
		element.next()
	}
	c.yield(c.array("data_mask"))
	c.yieldWeight(listed(out), []int{len(out)})
}
