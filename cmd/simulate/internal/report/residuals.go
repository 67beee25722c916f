package report

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// Residual is a measured chunk beside the prediction that was made without its session.
type Residual struct {
	Session    string
	Chunk      string
	Context    int
	MeasuredS  float64
	PredictedS float64
	LoS, HiS   float64 // 90 % range of the prediction
	Inside     bool
}

// Error is predicted over measured less one, in percent.
func (r *Residual) Error() float64 { return 100 * (r.PredictedS/r.MeasuredS - 1) }

// Places in the residual chart.
const (
	residualHeight = 320.0
	residualLeft   = 60.0
	residualRight  = chartWidth - 20
	residualTop    = 14.0
	residualBottom = residualHeight - 44
)

// residualChart draws the error of every row over its measured time, with its 90 % range.
func residualChart(rows []Residual) template.HTML {
	d := newDrawing(chartWidth, residualHeight, "error of predictions for sessions left out")
	if len(rows) == 0 {
		d.text("middle", chartWidth/2, residualHeight/2, "nobody measured this device")
		return d.end()
	}
	longest, most := 0.0, 5.0
	for i := range rows {
		r := &rows[i]
		longest = max(longest, 1e3*r.MeasuredS)
		most = max(most, math.Abs(100*(r.HiS/r.MeasuredS-1)), math.Abs(100*(r.LoS/r.MeasuredS-1)))
	}
	x := scale{0, longest * 1.05, residualLeft, residualRight}
	y := scale{-most * 1.05, most * 1.05, residualBottom, residualTop}
	for _, t := range ticks(0, longest, 8) {
		d.line("grid", x.at(t), residualTop, x.at(t), residualBottom)
		d.text("middle", x.at(t), residualBottom+16, short(t))
	}
	for _, t := range ticks(y.lo, y.hi, 6) {
		d.line("grid", residualLeft, y.at(t), residualRight, y.at(t))
		d.text("end", residualLeft-6, y.at(t)+4, short(t)+" %")
	}
	d.line("axis", residualLeft, y.at(0), residualRight, y.at(0))
	d.text("end", residualRight, residualBottom+34, "measured ms of a chunk")
	for i := range rows {
		drawResidual(d, x, y, &rows[i])
	}
	return d.end()
}

func drawResidual(d *drawing, x, y scale, r *Residual) {
	class, tip := "c1", "inside its range"
	if !r.Inside {
		class, tip = "c2", "outside its range"
	}
	at := x.at(1e3 * r.MeasuredS)
	d.line("range", at, y.at(100*(r.LoS/r.MeasuredS-1)), at, y.at(100*(r.HiS/r.MeasuredS-1)))
	d.dot(class, at, y.at(r.Error()), 4, fmt.Sprintf("%s %s: measured %s ms, predicted %s ms, %s", r.Session, r.Chunk, milli(r.MeasuredS), milli(r.PredictedS), tip))
}

// ErrorText is the error with its sign.
func (r *Residual) ErrorText() string {
	return strings.Replace(fmt.Sprintf("%+.1f %%", r.Error()), "-", "−", 1)
}
