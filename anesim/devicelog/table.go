package devicelog

import (
	"encoding/csv"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"anelab/internal/format"
)

// durationRE reads what Instruments prints: "5.62 ms", "812.30 µs", "1.02 s".
var durationRE = regexp.MustCompile(`^([0-9][0-9,]*(?:\.[0-9]+)?)\s*(ns|µs|μs|us|ms|s)$`)

var durationUnits = map[string]float64{"ns": 1e-9, "µs": 1e-6, "μs": 1e-6, "us": 1e-6, "ms": 1e-3, "s": 1}

// tableChunk finds a program and the number of its chunk: "chunk2_3way", "Prediction chunk_3".
var tableChunk = regexp.MustCompile(`(?i)chunk_?([1-9][0-9]?)[a-z0-9_]*`)

// loading tells intervals of loads from those of calls: the same table may have both.
var loading = regexp.MustCompile(`(?i)\b(load|unload|compil)`)

// nameColumns may hold the name of the program, the likeliest first.
var nameColumns = []string{"model", "model name", "label", "name", "event", "operation"}

// isTableHeader reports whether a first line is the header of an exported table.
func isTableHeader(line string) bool {
	columns := splitHeader(line)
	return len(columns) > 1 && slices.Contains(columns, "duration")
}

// Instruments exports commas or tabs, with or without quotes.
func splitHeader(line string) []string {
	comma := ","
	if strings.Contains(line, "\t") {
		comma = "\t"
	}
	columns := strings.Split(strings.ToLower(strings.TrimRight(line, "\r")), comma)
	for i := range columns {
		columns[i] = strings.Trim(strings.TrimSpace(columns[i]), `"`)
	}
	return columns
}

// readTable reads intervals of predictions, one per row, as Instruments exports them. The median of the warm calls of each
// chunk becomes a row; names without a chunk number are skipped.
func readTable(path string, data []byte, c Context) (Session, error) {
	text := strings.TrimPrefix(string(data), "\ufeff")
	first, _, _ := strings.Cut(text, "\n")
	columns := splitHeader(first)
	rd := csv.NewReader(strings.NewReader(text))
	if strings.Contains(first, "\t") {
		rd.Comma = '\t'
	}
	rd.FieldsPerRecord, rd.LazyQuotes = -1, true
	records, err := rd.ReadAll()
	if err != nil {
		return Session{}, &format.Error{Path: path, Err: err, Want: "a table with one interval per row"}
	}
	duration, name := slices.Index(columns, "duration"), -1
	for _, n := range nameColumns {
		if name = slices.Index(columns, n); name >= 0 {
			break
		}
	}
	if name < 0 {
		return Session{}, &format.Error{Path: path + ":1", Field: "header", Got: strings.Join(columns, ", "), Want: "a column that names the program: " + strings.Join(nameColumns, ", ")}
	}
	s := Session{Format: FormatInstruments, Lines: len(records) - 1}
	t := intervals{calls: map[int][]float64{}, programs: map[int]string{}}
	for i, r := range records[1:] {
		if max(duration, name) >= len(r) || tableChunk.FindString(r[name]) == "" || loading.MatchString(strings.Join(r, " ")) {
			s.Skipped++
			continue
		}
		if fault := t.add(r[name], r[duration]); fault != nil {
			fault.Path = fmt.Sprintf("%s:%d", path, i+2)
			return Session{}, fault
		}
	}
	err = tableRows(&s, path, t.calls, c) // before the return: it adds rows to s
	return s, err
}

// intervals are the calls of a table, by chunk number.
type intervals struct {
	calls    map[int][]float64 // ms
	programs map[int]string    // that were timed
}

// add files one interval. Two programs of one number are chunks of two layouts: a median over both would be the time of neither.
func (t *intervals) add(name, duration string) *format.Error {
	ms, ok := milliseconds(duration)
	if !ok {
		return &format.Error{Field: "duration", Got: strconv.Quote(duration), Want: "a number with ns, µs, ms or s"}
	}
	m := tableChunk.FindStringSubmatch(name)
	program := strings.ToLower(m[0])
	k, _ := strconv.Atoi(m[1])
	if before, seen := t.programs[k]; seen && before != program {
		return &format.Error{Field: "program", Got: strconv.Quote(program) + " after " + strconv.Quote(before), Want: "the calls of one layout", Fix: "export each session by itself"}
	}
	t.programs[k] = program
	t.calls[k] = append(t.calls[k], ms)
	return nil
}

// Thousands have commas in exported tables: "12,200.00 µs".
func milliseconds(text string) (float64, bool) {
	m := durationRE.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return 0, false
	}
	x, err := strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64)
	return x * durationUnits[m[2]] * 1e3, err == nil
}

// tableRows adds the median of each chunk's warm calls.
func tableRows(s *Session, path string, calls map[int][]float64, c Context) error {
	chunks := 0
	for k := range calls {
		chunks = max(chunks, k)
	}
	layout, ok := c.layout(chunks)
	if !ok {
		return &format.Error{Path: path, Got: fmt.Sprintf("programs of %d chunks", chunks), Want: "a layout with as many chunks", Fix: "say which with a layout of your own"}
	}
	for k := 1; k <= chunks; k++ {
		if len(calls[k]) == 0 {
			continue
		}
		seconds, quality, fault := warmMedian(calls[k])
		if fault != nil {
			fault.Path, fault.Field = path, fmt.Sprintf("chunk %d", k)
			return fault
		}
		row := chunkRow(c.measurement(1, c.Experiment, layout), k-1, seconds)
		row.Quality, row.Source = quality, "instruments"
		s.Measurements = append(s.Measurements, row)
	}
	return nil
}
