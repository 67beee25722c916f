package view

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// sig writes three significant digits without an exponent between 0.001 and a million.
func sig(x float64) string {
	a := math.Abs(x)
	switch {
	case x == 0:
		return "0"
	case a >= 1e6 || a < 1e-3 || math.IsNaN(x) || math.IsInf(x, 0):
		return strconv.FormatFloat(x, 'g', 3, 64)
	case a >= 99.95:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case a >= 9.995:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case a >= 0.9995:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return strconv.FormatFloat(x, 'f', 2-int(math.Floor(math.Log10(a))), 64)
}

// milli is a time in ms without its unit; columns of times are in ms.
func milli(seconds float64) string { return sig(1e3 * seconds) }

// signed is milli with a sign; what is below a nanosecond is rounding.
func signed(seconds float64) string {
	if math.Abs(seconds) < 1e-9 {
		return "0"
	}
	if seconds > 0 {
		return "+" + milli(seconds)
	}
	return "−" + milli(-seconds)
}

// plus writes a number with its sign; format has one verb for it, with a plus flag.
func plus(format string, x any) string { return minus(fmt.Sprintf(format, x)) }

// minus gives a negative figure a sign that is no hyphen.
func minus(figure string) string { return strings.Replace(figure, "-", "−", 1) }

// mega is a size in MB without its unit.
func mega(bytes int64) string { return sig(float64(bytes) / 1e6) }

// between is a range of two figures.
func between(lo, hi string) string { return lo + "–" + hi }

// pct is a share as a whole percentage.
func pct(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// exact is a figure for machines: shortest form that reads back to the same value.
func exact(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// plural is a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
