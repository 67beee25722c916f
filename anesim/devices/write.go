package devices

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"anelab/anesim"
)

// Write is the device as a file that [Read] reads back to the same value.
func Write(d anesim.Device) []byte {
	var w writer
	w.line(0, "# What is believed of this device. Values, correlation and evidence are written by `simulate calibrate`;")
	w.line(0, "# priors are edited by hand. SI units.")
	w.line(0, "format: %s", formatVersion)
	w.line(0, "name: %s", quote(d.Name))
	w.line(0, "title: %s", quote(d.Title))
	w.line(0, "class: %s", quote(string(d.Class)))
	w.line(0, "soc: %s", quote(d.SoC))
	w.line(0, "measured_as: %s", list(d.MeasuredAs))
	w.line(0, "noise: {chunk: %s, session: %s, step: %s, source: %s}", num(d.Noise.Chunk), num(d.Noise.Session), num(d.Noise.Step), quote(d.Noise.Source))
	w.line(0, "constants:")
	for t := range anesim.NumTerms {
		w.constant(t, &d)
	}
	if d.Evidence.Experiments > 0 {
		w.correlation(&d)
		w.evidence(&d.Evidence)
	}
	return w.Bytes()
}

type writer struct{ bytes.Buffer }

func (w *writer) line(indent int, text string, args ...any) {
	fmt.Fprintf(w, strings.Repeat("  ", indent)+text+"\n", args...)
}

// Values are written only after a calibration: before it they would be copies of the priors that could drift from them.
func (w *writer) constant(t anesim.Term, d *anesim.Device) {
	k := &d.Constants[t]
	w.line(1, "%s: # × %s", t, t.Quantity())
	if d.Evidence.Experiments > 0 {
		w.line(2, "value: %s", num(k.Value))
		w.line(2, "sd: %s", num(k.SD))
		w.line(2, "source: %s", quote(k.Source))
		w.line(2, "confidence: %s", quote(k.Confidence))
	}
	w.line(2, "unit: %s", k.Unit)
	w.line(2, "group: %s", quote(k.Group))
	w.line(2, "prior:")
	w.line(3, "value: %s", num(k.Prior.Value))
	w.line(3, "sd: %s", num(k.Prior.SD))
	w.line(3, "source: %s", quote(k.Prior.Source))
}

// Without it the errors of a sum of terms could not be had from the file.
func (w *writer) correlation(d *anesim.Device) {
	w.line(0, "correlation: # of the errors, lower triangle, chunk constants in the order above")
	for i := range d.Correlation {
		var row []string
		for j := range i {
			row = append(row, num(d.Correlation[i][j]))
		}
		w.line(1, "- [%s]", strings.Join(append(row, "1"), ", "))
	}
}

// What was measured, so that a prediction can tell known ground from unknown.
func (w *writer) evidence(e *anesim.Evidence) {
	w.line(0, "evidence:")
	w.line(1, "experiments: %d", e.Experiments)
	w.line(1, "rows: %d", e.Rows)
	w.line(1, "worst_miss: %s # relative, chunk sum of a session left out", num(e.WorstMiss))
	w.line(1, "interval_factor: %s # standard deviations in a 90 %% interval", num(e.IntervalFactor))
	w.line(1, "host_sd_s: %s", num(e.HostSDSeconds))
	w.line(1, "weights: %s", list(e.Weights))
	w.line(1, "max_layers: %d # of a chunk", e.MaxLayers)
	w.line(1, "models:")
	for _, m := range e.Models {
		w.line(2, "- {name: %s, layers: %d, hidden_size: %d}", quote(m.Name), m.Layers, m.HiddenSize)
	}
	w.line(1, "contexts:")
	for _, c := range e.Contexts {
		w.line(2, "- {context: %d, experiments: %d, layouts: %s}", c.Context, c.Experiments, list(c.Layouts))
	}
	w.line(1, "chunks:")
	for _, m := range e.Chunks {
		w.line(2, "- {model: %s, chunk: %s, context: %d, weights: %s, copyback: %s, rows: %d, experiments: %d, sessions: %s, median_s: %s, min_s: %s, max_s: %s}",
			quote(m.Model), quote(m.Chunk), m.Context, m.Weights, m.CopyBack, m.Rows, m.Experiments, list(m.Sessions), num(m.MedianSeconds), num(m.MinSeconds), num(m.MaxSeconds))
	}
}

// quote writes a string so that YAML cannot take it for anything else.
func quote(s string) string { return strconv.Quote(s) }

func list(all []string) string {
	quoted := make([]string, len(all))
	for i, s := range all {
		quoted[i] = quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// num keeps ten digits: more than any measurement, few enough that two machines write the same.
func num(x float64) string {
	s := strconv.FormatFloat(x, 'g', 10, 64)
	if strings.Contains(s, "e") && !strings.Contains(s, ".") {
		s = strings.Replace(s, "e", ".0e", 1) // YAML 1.1 readers take 1e-9 for a string
	}
	return s
}
