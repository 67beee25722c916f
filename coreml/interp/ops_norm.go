package interp

import (
	"math"

	"anelab/internal/arith"
)

// norms scale by statistics of x.
var norms = family{"layer_norm": layerNorm, "batch_norm": batchNorm, "instance_norm": instanceNorm, "l2_norm": l2Norm}

func layerNorm(c *call) {
	x := c.array("x")
	axes := c.axes("axes", len(x.shape))
	c.normed(x, axes, arith.Affine{Gamma: c.floats("gamma"), Beta: c.floats("beta")})
}

// normed norms over axes. gamma and beta have their dimensions in the same order.
func (c *call) normed(x *array, axes []int, after arith.Affine) {
	moved, back := x.toLast(axes)
	out := c.blank(c.declared(0).DType, moved.shape...)
	n := count(moved.shape[len(moved.shape)-len(axes):])
	c.graph().LayerNormRows(out.floats, moved.flat(), n, c.float("epsilon", 1e-5), after)
	c.yield(out.permute(back))
}

// batchNorm has mean and variance given, per channel.
func batchNorm(c *call) {
	epsilon, plain := c.float("epsilon", 1e-5), c.value("gamma") == nil
	c.perChannel([]string{"mean", "variance", "gamma", "beta"}, func(x float64, p []float64) float64 {
		if plain {
			p[2] = 1
		}
		return float64((x-p[0])/math.Sqrt(p[1]+epsilon)*p[2]) + p[3]
	})
}

// instanceNorm is a layer norm over the spatial dimensions, with gain and offset per channel.
func instanceNorm(c *call) {
	x := c.array("x")
	spatial := count(x.shape[2:])
	in, out, epsilon := x.flat(), newArray(c.declared(0).DType, x.shape...), c.float("epsilon", 1e-5)
	gamma, beta := c.floats("gamma"), c.floats("beta")
	for i := range x.shape[0] * x.shape[1] {
		after := arith.Affine{}
		if channel := i % x.shape[1]; gamma != nil {
			after.Gamma = repeated(gamma[channel:channel+1], spatial)
		}
		if channel := i % x.shape[1]; beta != nil {
			after.Beta = repeated(beta[channel:channel+1], spatial)
		}
		row := out.floats[i*spatial : (i+1)*spatial]
		c.graph().LayerNormRows(row, in[i*spatial:(i+1)*spatial], spatial, epsilon, after)
	}
	c.yield(out)
}

// l2Norm divides by the length over the last three dimensions.
func l2Norm(c *call) {
	x := c.array("x")
	n := count(tail(x.shape, 3))
	in, out, epsilon, row := x.flat(), newArray(c.declared(0).DType, x.shape...), c.float("epsilon", 1e-6), make([]float64, n)
	for lo := 0; lo < len(in); lo += n {
		for k := range row {
			row[k] = float64(in[lo+k])
		}
		length := math.Sqrt(sumSquares(row) + epsilon)
		for k := range row {
			out.floats[lo+k] = float32(float64(in[lo+k]) / length)
		}
	}
	c.graph().Store(out.floats)
	c.yield(out)
}
