package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
)

// FrontPoint is a layout that nothing else beats in every respect, among those with the same settings.
type FrontPoint struct {
	Settings   string // "int4g32"
	Layout     string
	TokPerSec  float64
	Resident   float64 // bytes
	FirstToken float64 // s
	Download   float64 // bytes
}

// Places in the front chart.
const (
	frontHeight = 380.0
	frontLeft   = 60.0
	frontRight  = chartWidth - 220
	frontTop    = 14.0
	frontBottom = frontHeight - 44
)

// frontChart draws memory to the right and rate upwards: up and left is better.
func frontChart(points []FrontPoint) template.HTML {
	d := newDrawing(chartWidth, frontHeight, "decode rate against resident memory")
	if len(points) == 0 {
		d.text("middle", chartWidth/2, frontHeight/2, "no layout that the device is known to run")
		return d.end()
	}
	x := frontScale(points, func(p *FrontPoint) float64 { return p.Resident / 1e6 }, frontLeft, frontRight)
	y := frontScale(points, func(p *FrontPoint) float64 { return p.TokPerSec }, frontBottom, frontTop)
	for _, t := range ticks(x.lo, x.hi, 6) {
		d.line("grid", x.at(t), frontTop, x.at(t), frontBottom)
		d.text("middle", x.at(t), frontBottom+16, short(t))
	}
	for _, t := range ticks(y.lo, y.hi, 6) {
		d.line("grid", frontLeft, y.at(t), frontRight, y.at(t))
		d.text("end", frontLeft-6, y.at(t)+4, short(t))
	}
	d.text("end", frontRight, frontBottom+34, "MB resident")
	d.text("start", 4, frontTop-2, "tok/s")
	series := settingsOf(points)
	for i := range points {
		p := &points[i]
		d.dot(colour(slices.Index(series, p.Settings)), x.at(p.Resident/1e6), y.at(p.TokPerSec), 6,
			fmt.Sprintf("%s, %s: %s tok/s, %s MB, first token %s ms", p.Layout, p.Settings, sig(p.TokPerSec), mega(p.Resident), milli(p.FirstToken)))
	}
	for i, name := range series {
		d.dot(colour(i), frontRight+20, frontTop+10+22*float64(i), 6, name)
		d.text("start", frontRight+32, frontTop+14+22*float64(i), clip(name, 26))
	}
	return d.end()
}

func settingsOf(points []FrontPoint) []string {
	var all []string
	for i := range points {
		if !slices.Contains(all, points[i].Settings) {
			all = append(all, points[i].Settings)
		}
	}
	return all
}

// frontScale leaves a tenth of the range free at both ends, and something where all values are one.
func frontScale(points []FrontPoint, of func(*FrontPoint) float64, from, to float64) scale {
	lo, hi := math.Inf(1), math.Inf(-1)
	for i := range points {
		lo, hi = min(lo, of(&points[i])), max(hi, of(&points[i]))
	}
	room := max((hi-lo)/10, hi/50)
	return scale{lo - room, hi + room, from, to}
}
