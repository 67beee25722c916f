package devicelog

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"anelab/anesim"
	"anelab/internal/format"
)

// tags are the brackets that make a text a console log.
var tags = regexp.MustCompile(`\[(Profile|Profile-2chunk|Profile-1chunk|ANE/CPU|Prefill|Load|ComputePlan)\]`)

var (
	fieldRE   = regexp.MustCompile(`([A-Za-z_][A-Za-z0-9_]*)=~?([0-9]+(?:\.[0-9]+)?)(ms|s)?\b`)
	rateRE    = regexp.MustCompile(`~?([0-9]+(?:\.[0-9]+)?) tok/s`)
	tokensRE  = regexp.MustCompile(`~?([0-9]+) tokens`)
	auditRE   = regexp.MustCompile(`(chunk[0-9A-Za-z_]*): ([0-9]+)/([0-9]+) ops NOT on Neural Engine`)
	auditAll  = regexp.MustCompile(`(chunk[0-9A-Za-z_]*): all ([0-9]+) ops on Neural Engine`)
	auditSum  = regexp.MustCompile(`summary: ([0-9]+) non-ANE op\(s\) out of ([0-9]+) total`)
	chunkName = regexp.MustCompile(`^[cm]([1-4])$`)
)

// A printed mean moves by less than this between two lines of a steady run; a phone that throttles or loads something else
// moves by more, and the mean then describes neither state.
const steady = 0.15

// agree is how far sums and rates of one line may be apart before it is worth a word.
const agree = 0.03

// profile is one [Profile] line.
type profile struct {
	line    int
	chunks  []float64 // s, timers that ran, in order
	names   string    // of those, to see a change of layout
	host    map[string]float64
	sum     float64
	total   float64
	predict float64
	rate    float64
}

// run is the profile lines between two resets: one layout.
type run struct {
	layout string // from a [Load] line; "" = by the number of timers
	lines  []profile
}

type logReader struct {
	path     string
	context  Context
	session  Session
	runs     []run
	problems []error
	prefills int
}

// readLog reads console text.
func readLog(path string, data []byte, c Context) (Session, error) {
	r := &logReader{path: path, context: c, session: Session{Format: FormatLog}}
	for i, line := range bytes.Split(data, []byte("\n")) {
		text := strings.TrimSpace(string(line))
		if text == "" {
			continue
		}
		r.session.Lines++
		loc := tags.FindStringIndex(text)
		if loc == nil || !r.tagged(i+1, text[loc[0]+1:loc[1]-1], text[loc[1]:]) {
			r.session.Skipped++
		}
	}
	for i := range r.runs {
		r.finish(i)
	}
	if len(r.session.Measurements) == 0 && len(r.problems) == 0 {
		r.problem(0, format.Error{Got: "no profile of a run", Want: "a [Profile] line, or a [Prefill] line"})
	}
	return r.session, errors.Join(r.problems...)
}

func (r *logReader) problem(line int, e format.Error) {
	e.Path = r.path
	if line > 0 {
		e.Path = fmt.Sprintf("%s:%d", r.path, line)
	}
	r.problems = append(r.problems, &e)
}

func (r *logReader) doubt(line int, text string, args ...any) {
	r.session.Doubts = append(r.session.Doubts, fmt.Sprintf("line %d: ", line)+fmt.Sprintf(text, args...))
}

// tagged reads a line behind its bracket; false when it says nothing.
func (r *logReader) tagged(line int, tag, rest string) bool {
	switch tag {
	case "Load":
		return r.load(rest)
	case "ComputePlan":
		return r.audit(line, rest)
	case "Prefill":
		return r.prefill(line, rest)
	case "ANE/CPU":
		return r.host(line, rest)
	}
	return r.profile(line, rest)
}

// load begins a run when the line names a layout.
func (r *logReader) load(rest string) bool {
	low := strings.ToLower(rest)
	next := run{}
	switch {
	case strings.Contains(low, "topology i ") || strings.HasSuffix(low, "topology i"):
		next.layout = topologyI
	case strings.Contains(low, "topology ii") || strings.Contains(low, "3-chunk") || strings.Contains(low, "three-chunk"):
		next.layout, _ = r.context.layout(3)
	case strings.Contains(low, "two-chunk") || strings.Contains(low, "2-chunk"):
		next.layout, _ = r.context.layout(2)
	case strings.Contains(low, "one-chunk") || strings.Contains(low, "1-chunk"):
		next.layout, _ = r.context.layout(1)
	case strings.Contains(low, "4-chunk") || strings.Contains(low, "four-chunk"):
		next.layout, _ = r.context.layout(4)
	default:
		return false
	}
	r.runs = append(r.runs, next)
	return true
}

// profile reads a line of cumulative means.
func (r *logReader) profile(line int, rest string) bool {
	p := profile{line: line, host: map[string]float64{}}
	for _, f := range fieldRE.FindAllStringSubmatch(rest, -1) {
		seconds, ok := r.seconds(line, f)
		if !ok {
			return true
		}
		switch name := f[1]; {
		case chunkName.MatchString(name) || name == "full":
			if seconds > 0 { // layouts with fewer chunks print 0.0 for the timer that never ran
				p.chunks, p.names = append(p.chunks, seconds), p.names+name+" "
			}
		case name == "sum":
			p.sum = seconds
		case name == "total":
			p.total = seconds
		case name == "predict":
			p.predict = seconds
		case name == "emb" || name == "mask":
			p.host[name] = seconds
		}
	}
	if m := rateRE.FindStringSubmatch(rest); m != nil {
		p.rate, _ = strconv.ParseFloat(m[1], 64)
	}
	if len(p.chunks) == 0 {
		return false
	}
	r.checkLine(&p)
	r.place(p)
	return true
}

// seconds reads one field. Fields of [Profile] carry "ms"; a bare "s" is another unit, and a chunk of less than a tenth of a
// millisecond is seconds printed as milliseconds.
func (r *logReader) seconds(line int, f []string) (float64, bool) {
	x, err := strconv.ParseFloat(f[2], 64)
	if err != nil || math.IsInf(x, 0) {
		r.problem(line, format.Error{Field: f[1], Got: strconv.Quote(f[2]), Want: "milliseconds"})
		return 0, false
	}
	if f[3] == "s" {
		return x, true
	}
	if chunkName.MatchString(f[1]) && x > 0 && x < 0.1 {
		r.problem(line, format.Error{Field: f[1], Got: f[2] + " ms", Want: "milliseconds", Fix: fmt.Sprintf("no call is that short: if these are seconds, write %g", x*1e3)})
		return 0, false
	}
	return x / 1e3, true
}

// checkLine compares the parts of a line with its sum, its total and its rate.
func (r *logReader) checkLine(p *profile) {
	var sum float64
	for _, c := range p.chunks {
		sum += c
	}
	apart := func(a, b float64) bool { return a > 0 && b > 0 && math.Abs(a/b-1) > agree }
	switch {
	case apart(sum, p.sum):
		r.doubt(p.line, "chunks add up to %.1f ms, the line says %.1f", 1e3*sum, 1e3*p.sum)
	case apart(p.total*p.rate, 1):
		r.doubt(p.line, "%.1f ms and %.1f tok/s are %.0f %% apart", 1e3*p.total, p.rate, 100*math.Abs(p.total*p.rate-1))
	}
}

// place puts a profile into its run. A mean that jumps, or another set of timers, cannot belong to the run before it.
func (r *logReader) place(p profile) {
	if len(r.runs) == 0 {
		r.runs = append(r.runs, run{})
	}
	last := &r.runs[len(r.runs)-1]
	if n := len(last.lines); n > 0 && last.lines[n-1].names != p.names {
		r.problem(p.line, format.Error{Field: "Profile", Got: "timers " + strings.TrimSpace(p.names) + " after " + strings.TrimSpace(last.lines[n-1].names),
			Want: "one layout between two [Load] lines", Fix: "give each layout a log of its own: means of two layouts cannot be taken apart"})
		return
	}
	if n := len(last.lines); n > 1 { // the first line is cold and may fall a long way
		if jump := meanOf(p.chunks)/meanOf(last.lines[n-1].chunks) - 1; math.Abs(jump) > steady {
			r.problem(p.line, format.Error{Field: "Profile", Got: fmt.Sprintf("means %+.0f %% from the line before", 100*jump), Want: "one steady run",
				Fix: "two sessions are mixed up, or the device throttled: paste each by itself"})
			return
		}
	}
	last.lines = append(last.lines, p)
}

// The mean of the timers, as one number for how a run moves.
func meanOf(x []float64) float64 {
	var s float64
	for _, v := range x {
		s += v
	}
	return s / float64(len(x))
}

// finish turns the last line of a run into rows.
func (r *logReader) finish(i int) {
	lines := r.runs[i].lines
	if len(lines) == 0 {
		return
	}
	p := lines[len(lines)-1]
	layout := r.runs[i].layout
	if layout == "" || strings.Count(layout, "|")+1 != len(p.chunks) {
		by, ok := r.context.layout(len(p.chunks))
		if !ok {
			r.problem(p.line, format.Error{Field: "Profile", Got: fmt.Sprintf("%d timers", len(p.chunks)), Want: "a layout with as many chunks", Fix: "say which with a layout of your own"})
			return
		}
		if layout != "" {
			r.doubt(p.line, "the [Load] line says %s, yet %d timers ran: taken as %s", layout, len(p.chunks), by)
		} else if len(p.chunks) == 3 {
			r.doubt(p.line, "three chunks without a [Load] line: taken as %s", by)
		}
		layout = by
	}
	m := r.context.measurement(p.line, r.name(i), layout)
	if len(lines) == 1 {
		m.ColdWarm = "cold"
		r.doubt(p.line, "the only profile line of its run: the mean includes the cold first steps, so it is not fitted")
	}
	r.rows(m, &p)
}

// name of the experiment of run i.
func (r *logReader) name(i int) string {
	if len(r.runs) > 1 {
		return fmt.Sprintf("%s#%d", r.context.Experiment, i+1)
	}
	return r.context.Experiment
}

// Host parts first, then chunks, then the step: the order of the line.
func (r *logReader) rows(m anesim.Measurement, p *profile) {
	for _, part := range []string{"emb", "mask"} {
		if s, ok := p.host[part]; ok {
			row := m
			row.Component, row.Seconds = part, s
			r.session.Measurements = append(r.session.Measurements, row)
		}
	}
	for k, s := range p.chunks {
		r.session.Measurements = append(r.session.Measurements, chunkRow(m, k, s))
	}
	if p.total > 0 || p.rate > 0 {
		step := m
		step.Component, step.Seconds, step.TokPerSec, step.Timed = "step", p.total, p.rate, p.total > 0
		step.HasPLE, step.HasHead = true, true
		r.session.Measurements = append(r.session.Measurements, step)
	}
}

// host reads the copy time; it is filed with the run that is being timed.
func (r *logReader) host(line int, rest string) bool {
	found := false
	for _, f := range fieldRE.FindAllStringSubmatch(rest, -1) {
		component := map[string]string{"copyBack": "copyback", "cpu_active": "host"}[f[1]]
		if seconds, ok := r.seconds(line, f); ok && component != "" {
			m := r.context.measurement(line, r.name(max(0, len(r.runs)-1)), "")
			m.Component, m.Seconds = component, seconds
			r.session.Measurements = append(r.session.Measurements, m)
			found = true
		}
	}
	return found
}

// prefill reads one batched prefill: times are for all rows of the graph, tokens are the real ones.
func (r *logReader) prefill(line int, rest string) bool {
	layout, _ := r.context.layout(4)
	r.prefills++
	m := r.context.measurement(line, fmt.Sprintf("%s-prefill#%d", r.context.Experiment, r.prefills), layout)
	m.KVMode, m.ColdWarm, m.Quality = "none", "", "B"
	if t := tokensRE.FindStringSubmatch(rest); t != nil {
		m.RealTokens, _ = strconv.Atoi(t[1])
	}
	found := false
	for _, f := range fieldRE.FindAllStringSubmatch(rest, -1) {
		seconds, ok := r.seconds(line, f)
		switch {
		case !ok:
			return true
		case f[1] == "total":
			m.Component, m.Seconds = "prefill-total", seconds
			r.session.Measurements = append(r.session.Measurements, m)
			found = true
		case chunkName.MatchString(f[1]):
			k := int(f[1][1] - '1')
			r.session.Measurements = append(r.session.Measurements, chunkRow(m, k, seconds))
			found = true
		}
	}
	return found
}

// audit reads a placement line.
func (r *logReader) audit(line int, rest string) bool {
	a := Audit{Line: line}
	switch {
	case auditRE.MatchString(rest):
		f := auditRE.FindStringSubmatch(rest)
		a.Chunk, a.Off, a.Ops = f[1], atoi(f[2]), atoi(f[3])
	case auditAll.MatchString(rest):
		f := auditAll.FindStringSubmatch(rest)
		a.Chunk, a.Ops = f[1], atoi(f[2])
	case auditSum.MatchString(rest):
		f := auditSum.FindStringSubmatch(rest)
		a.Off, a.Ops = atoi(f[1]), atoi(f[2])
	default:
		return false
	}
	a.Refused = a.Ops > 0 && float64(a.Off) > maxOff*float64(a.Ops)
	if a.Refused {
		r.doubt(line, "%d of %d ops are off the Neural Engine, more than 5 %%: the run says nothing of it", a.Off, a.Ops)
	}
	r.session.Audits = append(r.session.Audits, a)
	return true
}

// atoi of digits that a pattern matched; what is too large for an int is as large as can be.
func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return math.MaxInt32
	}
	return n
}
