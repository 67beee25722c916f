package anesim

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"anelab/internal/format"
)

// Plausible times. A chunk call cannot be shorter than its dispatch (0.1 ms on any published device, spec ane.md A1), so
// a smaller number is seconds. The slowest warm decode step on record, off the engine, took 1.1 s (experiments.csv, E4B with
// double buffers), so a longer one is microseconds.
const (
	minCallSeconds = 0.1e-3
	maxCallSeconds = 2
	rateDisagrees  = 0.03 // ms and tok/s of one row, before it is worth a word
	stepDisagrees  = 0.25 // a step and the sum of its chunks: the host takes 2 to 10 % of a token
)

// check compares the fields of a row with each other. Only a row that would be fitted must be right; what is wrong with
// the others is at most a doubt.
func (f fields) check(m Measurement) {
	for _, column := range []string{"experiment", "device", "model", "component"} {
		if f.text(column) == "" {
			f.bad(column, format.Error{Got: "nothing", Want: "a value"})
		}
	}
	if !m.fittable() && m.Component != "step" {
		return
	}
	switch {
	case m.Seconds > 0 && m.Seconds < minCallSeconds:
		f.bad("ms", format.Error{Want: "milliseconds", Fix: fmt.Sprintf("no call is that short: if these are seconds, write %.6g", m.Seconds*1e6)})
	case m.Seconds > maxCallSeconds:
		f.bad("ms", format.Error{Want: "milliseconds", Fix: fmt.Sprintf("no warm decode call is that long: if these are microseconds, write %.6g", m.Seconds)})
	}
	f.checkLayers(m)
}

// rateMismatch is how far ms and tok/s of a row are apart, as a ratio above 1; 0 when only one was printed.
func rateMismatch(m Measurement) float64 {
	if m.Seconds == 0 || m.TokPerSec == 0 {
		return 0
	}
	r := m.Seconds * m.TokPerSec
	return max(r, 1/r) - 1
}

// checkLayers compares a chunk's layers with its place in the layout.
func (f fields) checkLayers(m Measurement) {
	k := m.chunkNumber()
	if k == 0 || m.Layout == "" {
		return
	}
	if k > m.chunks() {
		f.bad("component", format.Error{Want: fmt.Sprintf("a chunk of the layout, 1 to %d", m.chunks())})
		return
	}
	want := strings.Split(m.Layout, "|")[k-1]
	if got := layerText(m); got != want {
		f.bad("component", format.Error{Got: fmt.Sprintf("chunk %d with layers %s", k, got), Want: want + " as in the layout"})
	}
}

// layerText is the chunk of a row as the layout column writes it: "25-34+head", "8-8", "head".
func layerText(m Measurement) string {
	if m.Hi == 0 {
		return "head"
	}
	s := strconv.Itoa(m.Lo) + "-" + strconv.Itoa(m.Hi-1)
	if m.HasHead {
		s += "+head"
	}
	return s
}

// checkRows looks for what no single row shows: a line given twice, and one experiment on two devices.
func (rd *reader) checkRows(rows []Measurement) {
	seen, device := map[Measurement]int{}, map[string]Measurement{}
	for _, m := range rows {
		key := m
		key.Line = 0
		if line, twice := seen[key]; twice {
			rd.problem(m.Line, 1, format.Error{Field: m.Experiment, Got: fmt.Sprintf("the same row as line %d", line), Want: "each measurement once",
				Fix: "delete one of them; a repeat of the run differs in its note"})
		} else {
			seen[key] = m.Line
		}
		if first, ok := device[m.Experiment]; ok && first.Device != m.Device {
			rd.problem(m.Line, 1, format.Error{Field: m.Experiment, Got: fmt.Sprintf("device %q, but %q in line %d", m.Device, first.Device, first.Line),
				Want: "one device per experiment", Fix: "give each device its own experiment name"})
		} else if !ok {
			device[m.Experiment] = m
		}
	}
}

// Doubts lists, by line, what is legal in a measurements file but worth reading before its numbers are believed.
func Doubts(rows []Measurement) []string {
	var all []string
	say := func(m Measurement, text string, args ...any) {
		all = append(all, m.where()+": "+fmt.Sprintf(text, args...))
	}
	chunks := timesOf(rows)
	for _, m := range rows {
		if sum := chunks.sum(m.Experiment); m.decodeStep() && sum > 0 && math.Abs(m.stepSeconds()/sum-1) > stepDisagrees {
			say(m, "a step of %.3g ms over chunks of %.3g ms together", 1e3*m.stepSeconds(), 1e3*sum)
		}
		if first := chunks.repeats(m); first > 0 {
			say(m, "chunk %s again, as in line %d, with another time and the same note", m.Component, first)
		}
		if _, ok := m.CopyBack(); !ok && m.fittable() {
			say(m, "the note does not begin with copyback=sync, async or none; taken as %s by its date", m.copyBackByDate())
		}
		if r := rateMismatch(m); m.Component == "step" && m.QueryTokens == 1 && r > rateDisagrees {
			say(m, "%g ms and %g tok/s are %.0f %% apart", m.Seconds*1e3, m.TokPerSec, 100*r)
		}
		if m.Seconds == 0 && m.TokPerSec == 0 && m.Component != "mask" && m.Component != "emb" {
			say(m, "neither a time nor a rate")
		}
		if m.Quality == "X" {
			say(m, "quality X, recorded but not for fitting: %s", m.Note)
		}
	}
	return all
}

// sessionTimes are the timed chunks of each experiment.
type sessionTimes map[string][]Measurement

func timesOf(rows []Measurement) sessionTimes {
	s := sessionTimes{}
	for _, m := range rows {
		if m.fittable() {
			s[m.Experiment] = append(s[m.Experiment], m)
		}
	}
	return s
}

// sum is the mean time of each chunk, added up; 0 unless every chunk of one layout was timed.
func (s sessionTimes) sum(experiment string) float64 {
	total, count := map[string]float64{}, map[string]int{}
	for _, m := range s[experiment] {
		total[m.Component] += m.Seconds
		count[m.Component]++
	}
	if len(count) == 0 || len(count) != s[experiment][0].chunks() {
		return 0
	}
	var sum float64
	for component, seconds := range total {
		sum += seconds / float64(count[component])
	}
	return sum
}

// repeats is the line of an earlier row of the same chunk that nothing but the time tells from m; 0 if there is none.
func (s sessionTimes) repeats(m Measurement) int {
	for _, o := range s[m.Experiment] {
		line := o.Line
		o.Line, o.Seconds, o.TokPerSec = m.Line, m.Seconds, m.TokPerSec
		if line < m.Line && o == m {
			return line
		}
	}
	return 0
}
