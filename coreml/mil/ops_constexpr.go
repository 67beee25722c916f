package mil

import "fmt"

// compressed are ops that describe a constant in fewer bits. Until specification version 8 their operands are attributes.
var compressed = table{
	{"constexpr_lut_to_dense 16 | indices!:byte lut!:entry shape!:int", inferPackedLUT},
	{"constexpr_lut_to_dense 18 | indices:index lut:entry vector_axis?!:int", inferLUT},
	{"constexpr_affine_dequantize 16 | quantized_data:byte zero_point:entry scale:float axis!:int", inferAffineDequantize},
	{"constexpr_cast 16 | source_val:any output_dtype!:string", inferConstexprCast},
	{"constexpr_sparse_to_dense 16 | nonzero_data!:entry mask!:byte shape!:int", inferPackedSparse},
	{"constexpr_sparse_to_dense 18 | nonzero_data:stored mask:bit", inferSparse},
	{"constexpr_blockwise_shift_scale 18 | data:stored scale:float offset?:stored", inferBlockwise},
	{"constexpr_lut_to_sparse 18 | indices_mask:bit indices_nonzero_data:index lut:entry vector_axis?!:int", inferLUTToSparse},
	{"constexpr_sparse_blockwise_shift_scale 18 | data_mask:bit nonzero_data:stored scale:float offset?:stored", inferSparseBlockwise},
}

// inferPackedLUT: indices are bits, packed least significant first, for the elements of shape; the LUT has one table.
func inferPackedLUT(c *call) []Type {
	t := TensorOf(c.typeOf("lut").DType)
	shape, ok := c.ints("shape")
	lut, okLUT := c.shape("lut")
	if !ok || !okLUT {
		return []Type{unranked(t.DType)}
	}
	t.Shape = shape
	if len(lut) != 1 {
		c.wrongShape("lut", "rank 1")
		return nil
	}
	bits := log2(lut[0])
	if bits < 1 || bits > 8 {
		c.wrongShape("lut", "2, 4, 16, 64 or 256 entries")
		return nil
	}
	n, ok := t.Count()
	if s, _ := c.shape("indices"); !ok || len(s) != 1 || s[0] != (n*int64(bits)+7)/8 {
		c.wrongShape("indices", "[%d] bytes: %d indices of %d bits", (n*int64(bits)+7)/8, n, bits)
	}
	return []Type{t}
}

// log2 is the exponent of a power of two, −1 for other numbers.
func log2(n int64) int {
	for b := range 62 {
		if n == 1<<b {
			return b
		}
	}
	return -1
}

// inferLUT: indices of any shape S, lut [G…, 2^bits, V]: block sizes are S/G, and V > 1 entries stretch the vector axis.
func inferLUT(c *call) []Type {
	return c.lutResult("indices", c.typeOf("indices"))
}

// lutResult is the dense type that indices of type t stand for.
func (c *call) lutResult(param string, t Type) []Type {
	d := c.typeOf("lut").DType
	lut, ok := c.shape("lut")
	if !ok || !t.Static() {
		return []Type{unranked(d)}
	}
	rank := len(t.Shape)
	if len(lut) != rank+2 {
		c.wrongShape("lut", "rank %d, two more than %s", rank+2, param)
		return nil
	}
	entries, vector := lut[rank], lut[rank+1]
	if bits := c.typeOf(indexOperand(c)).DType.Bits(); entries != 1<<bits {
		c.wrongShape("lut", "%d entries (dimension %d) for %d-bit indices", int64(1)<<bits, rank, bits)
		return nil
	}
	for i, n := range t.Shape {
		if lut[i] < 1 || n%lut[i] != 0 {
			c.wrongShape("lut", "a number of groups in dimension %d that divides %d", i, n)
			return nil
		}
	}
	shape := append([]int64{}, t.Shape...)
	if vector > 1 {
		if !c.has("vector_axis") {
			c.fail(ErrMissing, "vector_axis", fmt.Sprintf("a LUT of vectors of %d", vector), "")
			return nil
		}
		axis, ok := c.axis("vector_axis", 0, rank)
		if !ok {
			return nil
		}
		shape[axis] = times(shape[axis], vector)
	}
	return []Type{TensorOf(d, shape...)}
}

// indexOperand is the operand that holds the indices.
func indexOperand(c *call) string {
	if c.has("indices") {
		return "indices"
	}
	return "indices_nonzero_data"
}

func inferLUTToSparse(c *call) []Type {
	mask := c.typeOf("indices_mask")
	dense := c.lutResult("indices_mask", mask)
	if dense == nil {
		return nil
	}
	values := c.typeOf("indices_nonzero_data")
	values.DType = c.typeOf("lut").DType
	mask.Shape = dense[0].Shape
	if lut, ok := c.shape("lut"); ok && len(values.Shape) == 1 && len(lut) > 0 {
		values.Shape = []int64{times(values.Shape[0], lut[len(lut)-1])}
	}
	return []Type{mask, values}
}

// inferAffineDequantize: scale and zero point are scalars, or have one entry for each index of the axis.
func inferAffineDequantize(c *call) []Type {
	t := c.typeOf("quantized_data")
	t.DType = c.typeOf("scale").DType
	if !t.Ranked() {
		return []Type{t}
	}
	axis, ok := c.axis("axis", 0, max(1, len(t.Shape)))
	if !ok {
		return nil
	}
	for _, p := range []string{"scale", "zero_point"} {
		s, ok := c.shape(p)
		if ok && len(s) > 0 && (len(t.Shape) == 0 || !CompatibleShapes(s, t.Shape[axis:axis+1])) {
			c.wrongShape(p, "a scalar, or [%s] as dimension %d of quantized_data", lastDim(t.Shape[:min(axis+1, len(t.Shape))]), axis)
		}
	}
	return []Type{t}
}

func inferConstexprCast(c *call) []Type { return c.withDType("output_dtype", c.typeOf("source_val")) }

func inferPackedSparse(c *call) []Type {
	d := c.typeOf("nonzero_data").DType
	shape, ok := c.ints("shape")
	if !ok {
		return []Type{unranked(d)}
	}
	t := TensorOf(d, shape...)
	n, ok := t.Count()
	if s, _ := c.shape("mask"); !ok || len(s) != 1 || s[0] != (n+7)/8 {
		c.wrongShape("mask", "[%d] bytes: one bit for each of %d elements", (n+7)/8, n)
	}
	return []Type{t}
}

func inferSparse(c *call) []Type {
	return []Type{{Kind: Tensor, DType: c.typeOf("nonzero_data").DType, Shape: c.typeOf("mask").Shape}}
}

// inferBlockwise: scale and offset have data's rank, and sizes that divide data's.
func inferBlockwise(c *call) []Type {
	data := c.typeOf("data")
	c.blocksOf(data, "scale", "offset")
	return []Type{{Kind: Tensor, DType: c.typeOf("scale").DType, Shape: data.Shape}}
}

func (c *call) blocksOf(data Type, params ...string) {
	if !data.Static() {
		return
	}
	for _, p := range params {
		s, ok := c.shape(p)
		if !ok || !c.has(p) {
			continue
		}
		if len(s) != len(data.Shape) {
			c.wrongShape(p, "rank %d, as the data", len(data.Shape))
			return
		}
		for i, n := range data.Shape {
			if s[i] < 1 || n%s[i] != 0 {
				c.wrongShape(p, "a size in dimension %d that divides %d", i, n)
				return
			}
		}
	}
}

func inferSparseBlockwise(c *call) []Type {
	mask, values := c.typeOf("data_mask"), c.typeOf("nonzero_data")
	c.blocksOf(mask, "scale", "offset")
	values.DType = c.typeOf("scale").DType
	return []Type{mask, values}
}
