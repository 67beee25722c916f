package quant

import (
	"fmt"
	"math"
	"strconv"

	"anelab/internal/format"
	"anelab/internal/half"
)

// Mode is how the entries of a palette are chosen.
type Mode uint8

// The modes of the converter.
const (
	KMeans  Mode = iota // least squared error
	Uniform             // equal steps from the least to the greatest weight
	Unique              // the values themselves, where a table can hold them
)

var modes = []string{"kmeans", "uniform", "unique"}

func (m Mode) String() string {
	if int(m) < len(modes) {
		return modes[m]
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// ParseMode reads the name of a mode.
func ParseMode(s string) (Mode, error) {
	for i, name := range modes {
		if s == name {
			return Mode(i), nil
		}
	}
	return 0, &format.Error{Field: "mode", Got: strconv.Quote(s), Want: "kmeans, uniform or unique", Fix: format.DidYouMean(s, modes)}
}

// exactFrom is the group size from which coremltools clusters fp16 weights exactly; below it, and for float32, it calls
// scikit-learn, whose tables depend on that library's version (spec coreml.md §5 no. 4).
const exactFrom = 10_000

// chooser makes tables: entries in table, and in index the entry of every value of the histogram.
type chooser struct {
	mode    Mode
	single  bool // float32 arithmetic
	cutter  cutter
	shifted histogram
	index   []byte
}

// choose fills table, whose length is 2^bits, for one group.
func (c *chooser) choose(table []float32, h *histogram, elements int) error {
	c.index = grow(c.index, len(h.values))
	clear(table)
	switch c.mode {
	case Uniform:
		return c.uniform(table, h)
	case Unique:
		return c.unique(table, h)
	}
	if c.single || elements < exactFrom {
		c.nearest(table, h)
	} else {
		c.converter(table, h)
	}
	return nil
}

// converter is k-means as coremltools has it: indices follow the clusters, then the means are rounded.
func (c *chooser) converter(table []float32, h *histogram) {
	starts := c.cutter.cuts(h, len(table))
	for k, mean := range c.cutter.means(h, starts) {
		table[k] = c.round(mean)
	}
	cluster := 0
	for i := range h.values {
		for cluster+1 < len(starts) && i >= starts[cluster+1] {
			cluster++
		}
		c.index[i] = byte(cluster)
	}
}

// nearest is k-means where the converter's result is not defined: sums about the mean, and every value goes to the nearest of
// the rounded entries.
func (c *chooser) nearest(table []float32, h *histogram) {
	var n, sum float64
	for i, x := range h.values {
		n += h.counts[i]
		sum += float64(h.counts[i] * x)
	}
	mean := sum / n
	c.shifted.values, c.shifted.counts = grow(c.shifted.values, len(h.values)), h.counts
	for i, x := range h.values {
		c.shifted.values[i] = x - mean
	}
	starts := c.cutter.anyCuts(&c.shifted, len(table))
	for k, m := range c.cutter.means(&c.shifted, starts) {
		table[k] = c.round(m + mean)
	}
	entry, last := 0, len(starts)-1
	for i, x := range h.values {
		for entry < last && math.Abs(float64(table[entry+1])-x) < math.Abs(float64(table[entry])-x) {
			entry++
		}
		c.index[i] = byte(entry)
	}
}

// round is the nearest number of the entries' type, rounded once.
func (c *chooser) round(x float64) float32 {
	if c.single {
		return float32(x)
	}
	return half.F16ToF32(f64ToF16(x))
}

// f64ToF16 rounds once. Through float32 a number just beside a tie would be rounded twice; a float32 rounded to odd keeps on
// which side of the tie it lay.
func f64ToF16(x float64) uint16 {
	f := float32(x)
	bits := math.Float32bits(f)
	if float64(f) != x && bits&1 == 0 {
		if (float64(f) < x) == (f > 0) {
			bits++
		} else {
			bits--
		}
	}
	return half.F32ToF16(math.Float32frombits(bits))
}

// uniform takes the range, the step and the index in the weights' own arithmetic, and the entries in float64, as numpy does
// for the converter's expressions.
func (c *chooser) uniform(table []float32, h *histogram) error {
	least, greatest := float32(h.values[0]), float32(h.values[len(h.values)-1])
	span, steps := c.narrow(greatest-least), float32(len(table)-1)
	if span-span != 0 {
		return &format.Error{Got: fmt.Sprintf("weights from %g to %g", least, greatest), Want: "a range that fp16 can hold (65504)",
			Fix: "use mode kmeans"}
	}
	step := c.narrow(span / steps)
	for i := range table {
		table[i] = c.round(float64(float64(i)*float64(step)) + float64(least))
	}
	clear(c.index)
	if span == 0 { // coremltools divides 0 by 0 here
		return nil
	}
	for i, x := range h.values {
		share := c.narrow(c.narrow(float32(x)-least) / span)
		c.index[i] = byte(math.RoundToEven(float64(c.narrow(share * steps))))
	}
	return nil
}

// narrow rounds a float32 result to the weights' type.
func (c *chooser) narrow(x float32) float32 {
	if c.single {
		return x
	}
	return half.RoundF16(x)
}

// unique lists the values in ascending order.
func (c *chooser) unique(table []float32, h *histogram) error {
	if len(h.values) > len(table) {
		return &format.Error{Got: fmt.Sprintf("%d distinct values", len(h.values)), Want: fmt.Sprintf("at most %d in a table", len(table)),
			Fix: "use mode kmeans, more bits or smaller groups"}
	}
	for i, x := range h.values {
		table[i], c.index[i] = float32(x), byte(i)
	}
	return nil
}
