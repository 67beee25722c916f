package emit

import (
	"anelab/coreml/mil"
)

// The compositions of a layer as ops, one rounding each: what package arith does in mode ane, value for value (spec forward.md
// §5.3). Tensors of the stream are [1, T, n]; products are 1×1 convolutions on [1, n, 1, T], the layout of the Neural Engine.

func (g *graph) add2(name, x, y string) string { return g.op("add", name, in("x", x), in("y", y)) }
func (g *graph) mul(name, x, y string) string  { return g.op("mul", name, in("x", x), in("y", y)) }

// scale multiplies by a constant that the mode holds in fp16.
func (g *graph) scale(name, x string, c float64) string {
	return g.op("mul", name, in("x", x), g.set("y", f16(c)))
}

func (g *graph) reshape(name, x string, shape ...int64) string {
	return g.op("reshape", name, in("x", x), g.ints("shape", shape...))
}

func (g *graph) transpose(name, x string, perm ...int64) string {
	return g.op("transpose", name, in("x", x), g.ints("perm", perm...))
}

func (g *graph) concat(name string, axis int32, values ...string) string {
	return g.op("concat", name, in("values", values...), g.set("axis", mil.Scalar(axis)), g.flag("interleave", false))
}

// slice takes [lo, hi) of one axis.
func (g *graph) slice(name, x string, axis int, lo, hi int64) string {
	shape := g.shape(x)
	if lo == 0 && hi == shape[axis] {
		return x
	}
	begin, end := make([]int64, len(shape)), append([]int64(nil), shape...)
	begin[axis], end[axis] = lo, hi
	return g.op("slice_by_index", name, in("x", x), g.ints("begin", begin...), g.ints("end", end...))
}

// toChannels turns [1, T, n] into [1, n, 1, T].
func (g *graph) toChannels(x string) string {
	return g.op("expand_dims", "channels", in("x", g.transpose("columns", x, 0, 2, 1)), g.ints("axes", 2))
}

// toRows turns [1, n, 1, T] into [1, T, n].
func (g *graph) toRows(x string) string {
	return g.transpose("rows", g.op("squeeze", "columns", in("x", x), g.ints("axes", 2)), 0, 2, 1)
}

// conv is a product with a weight [out, in, 1, 1].
func (g *graph) conv(name, x, weight string) string {
	return g.op("conv", name, in("x", x), in("weight", weight), g.ints("strides", 1, 1), g.set("pad_type", mil.Scalar("valid")),
		g.ints("pad", 0, 0, 0, 0), g.ints("dilations", 1, 1), g.set("groups", mil.Scalar(int32(1))))
}

// unit norms rows along the last axis without a gain. LayerNorm of [x, −x] has mean zero and the variance mean(x²): the one norm
// that the Neural Engine computes wide inside.
func (g *graph) unit(x string, eps float64) string {
	shape := g.shape(x)
	last := len(shape) - 1
	mirrored := g.concat("mirrored", int32(last), x, g.scale("negated", x, -1))
	normed := g.op("layer_norm", "normed", in("x", mirrored), g.ints("axes", int64(last)), g.set("epsilon", f16(eps)))
	return g.slice("unit", normed, last, 0, shape[last])
}

// rmsNorm is unit times a gain.
func (g *graph) rmsNorm(name, x, gain string, eps float64) string {
	return g.mul(name, g.unit(x, eps), gain)
}

// rope rotates pairs (i, i+d/2) of x [1, H, T, d].
func (g *graph) rope(name, x, cos, sin string) string {
	shape := g.shape(x)
	last := len(shape) - 1
	d := shape[last]
	lo, hi := g.slice("lower", x, last, 0, d/2), g.slice("upper", x, last, d/2, d)
	turned := g.concat("turned", int32(last), g.scale("negated", hi, -1), lo)
	return g.add2(name, g.mul("cosine", x, cos), g.mul("sine", turned, sin))
}

// softmax is five ops.
func (g *graph) softmax(x string) string {
	last := int64(len(g.shape(x)) - 1)
	most := g.op("reduce_max", "most", in("x", x), g.ints("axes", last), g.flag("keep_dims", true))
	powers := g.op("exp", "powers", in("x", g.op("sub", "differences", in("x", x), in("y", most))))
	sum := g.op("reduce_sum", "sum", in("x", powers), g.ints("axes", last), g.flag("keep_dims", true))
	return g.op("real_div", "probabilities", in("x", powers), in("y", sum))
}

func (g *graph) gelu(x string) string {
	return g.op("gelu", "gelu", in("x", x), g.set("mode", mil.Scalar("TANH_APPROXIMATION")))
}

func (g *graph) matmul(name, x, y string, transposeY bool) string {
	return g.op("matmul", name, in("x", x), in("y", y), g.flag("transpose_x", false), g.flag("transpose_y", transposeY))
}
