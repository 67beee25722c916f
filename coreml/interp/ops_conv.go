package interp

import (
	"slices"
)

// convolutions slide a window over the spatial dimensions of x [N, C, D…].
var convolutions = family{"conv": conv}

// window is where a convolution reads, per spatial dimension.
type window struct {
	kernel, stride, dilation, before, out []int
}

// window resolves the parameters for spatial sizes in.
func (c *call) window(in, kernel []int) window {
	n := len(kernel)
	w := window{kernel: kernel, stride: c.ints("strides", ones(n)), dilation: c.ints("dilations", ones(n)), before: make([]int, n), out: make([]int, n)}
	pads := c.ints("pad", make([]int, 2*n))
	kind := c.text("pad_type", "valid")
	for i := range n {
		reach := (kernel[i]-1)*w.dilation[i] + 1
		total := 0
		switch kind {
		case "custom":
			w.before[i], total = pads[2*i], pads[2*i]+pads[2*i+1]
		case "same", "same_lower":
			total = max(0, ((in[i]+w.stride[i]-1)/w.stride[i]-1)*w.stride[i]+reach-in[i])
			if w.before[i] = total / 2; kind == "same_lower" {
				w.before[i] = (total + 1) / 2
			}
		}
		w.out[i] = max(0, (in[i]+total-reach)/w.stride[i]+1)
	}
	return w
}

// pointwise reports whether every output sees the one input at its own place.
func (w window) pointwise(in []int) bool {
	return count(w.kernel) == 1 && slices.Equal(w.out, in) && !slices.ContainsFunc(w.stride, func(s int) bool { return s != 1 })
}

// conv is a product of the weight, one row per output channel, with the patches of x that the window sees.
func conv(c *call) {
	x, v := c.array("x"), c.value("weight")
	m, err := v.matrix(v.shape[0])
	if err != nil {
		c.fail(err)
		return
	}
	groups, batch := c.int("groups", 1), x.shape[0]
	w := c.window(x.shape[2:], v.shape[2:])
	places, channels, perGroup := count(w.out), v.shape[0]/groups, v.shape[1]
	rows := c.blank(x.dtype, batch, places, v.shape[0])
	bias := c.floats("bias")
	for g := range groups {
		patches := w.patches(x.narrow(1, g*perGroup, perGroup))
		if groups == 1 {
			c.graph().LinearBias(rows.floats, m, patches, batch*places, bias)
			break
		}
		part, y := &part{m, g * channels, channels}, newArray(x.dtype, batch, places, channels)
		var b []float32
		if bias != nil {
			b = bias[g*channels : (g+1)*channels]
		}
		c.graph().LinearBias(y.floats, part, patches, batch*places, b)
		copyInto(rows.narrow(2, g*channels, channels), y)
	}
	c.yield(rows.permute([]int{0, 2, 1}).reshape(append([]int{batch, v.shape[0]}, w.out...)...))
}

// patches is what the window sees at each place, [N, places, C, kernel…]; zero beyond the edges.
func (w window) patches(x *array) []float32 {
	batch, channels, in := x.shape[0], x.shape[1], x.shape[2:]
	if w.pointwise(in) {
		return x.reshape(batch, channels, count(in)).permute([]int{0, 2, 1}).flat()
	}
	data, places, taps := x.flat(), count(w.out), count(w.kernel)
	out := make([]float32, batch*places*channels*taps)
	place := grid{shape: w.out, blocks: w.out}.at(0)
	for p := range places {
		tap := grid{shape: w.kernel, blocks: w.kernel}.at(0)
		for k := range taps {
			if at, inside := w.source(place.index, tap.index, in); inside {
				for nc := range batch * channels {
					b, ch := nc/channels, nc%channels
					out[((b*places+p)*channels+ch)*taps+k] = data[nc*count(in)+at]
				}
			}
			tap.next()
		}
		place.next()
	}
	return out
}

// source is the element that a tap of the window reads at a place.
func (w window) source(place, tap, in []int) (at int, inside bool) {
	for i, n := range in {
		x := place[i]*w.stride[i] + tap[i]*w.dilation[i] - w.before[i]
		if x < 0 || x >= n {
			return 0, false
		}
		at = at*n + x
	}
	return at, true
}
