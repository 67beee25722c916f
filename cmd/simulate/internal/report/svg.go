package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
)

// drawing collects the elements of one SVG. Colours are classes, so that the page's style sheet decides about light and dark.
type drawing struct {
	b             strings.Builder
	width, height float64
}

func newDrawing(width, height float64, title string) *drawing {
	d := &drawing{width: width, height: height}
	d.add(`<svg viewBox="0 0 %s %s" role="img" aria-label="%s">`, num(width), num(height), html.EscapeString(title))
	return d
}

func (d *drawing) add(format string, args ...any) { fmt.Fprintf(&d.b, format, args...) }

// end closes the drawing. Everything in it was written by this package, text escaped.
func (d *drawing) end() template.HTML {
	d.add("</svg>")
	return template.HTML(d.b.String())
}

// num is a coordinate: a tenth of a pixel is enough for anyone.
func num(x float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", x), ".0")
}

// box is the place of a bar.
type box struct{ x, y, width, height float64 }

// rect draws a bar with a tip for the pointer.
func (d *drawing) rect(class string, b box, tip string) {
	d.add(`<rect class="%s" x="%s" y="%s" width="%s" height="%s"><title>%s</title></rect>`, class, num(b.x), num(b.y), num(max(b.width, 0)), num(b.height), html.EscapeString(tip))
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	d.add(`<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, num(x1), num(y1), num(x2), num(y2))
}

func (d *drawing) dot(class string, x, y, r float64, tip string) {
	d.add(`<circle class="%s" cx="%s" cy="%s" r="%s"><title>%s</title></circle>`, class, num(x), num(y), num(r), html.EscapeString(tip))
}

// text is anchored at "start", "middle" or "end".
func (d *drawing) text(anchor string, x, y float64, text string) {
	d.add(`<text text-anchor="%s" x="%s" y="%s">%s</text>`, anchor, num(x), num(y), html.EscapeString(text))
}

// scale maps values to coordinates.
type scale struct{ lo, hi, from, to float64 }

func (s scale) at(x float64) float64 {
	if s.hi == s.lo {
		return s.from
	}
	return s.from + (x-s.lo)/(s.hi-s.lo)*(s.to-s.from)
}

// ticks are round values inside a range, about n of them.
func ticks(lo, hi float64, n int) []float64 {
	if !(hi > lo) {
		return []float64{lo}
	}
	raw := (hi - lo) / float64(n)
	step := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*step >= raw {
			step *= m
			break
		}
	}
	var all []float64
	for i := math.Ceil(lo / step); i*step <= hi*(1+1e-9); i++ {
		all = append(all, i*step)
	}
	return all
}

// short writes a tick.
func short(x float64) string {
	if x == 0 {
		return "0"
	}
	return strings.Replace(fmt.Sprintf("%g", math.Round(x*1e6)/1e6), "-", "−", 1)
}
