package anesim

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"anelab/internal/format"
)

// columns of a measurements file, in the order in which we write them about; files may have any order.
var columns = []string{"experiment", "session_date", "source", "device", "soc", "os", "model", "kv_mode", "layout", "ctx",
	"query_tokens", "real_tokens", "weight_bits", "group_size", "component", "first_layer", "last_layer", "has_ple", "has_head",
	"ms", "tok_per_s", "cold_warm", "quality", "cross_check", "note"}

// maxRows is far above any hand-made file.
const maxRows = 1 << 20

// ReadMeasurements reads a measurements file (data README). It goes on after a bad row: the error joins everything that is
// wrong, each part a [format.Error] with its line and column, and the rows returned are the good ones. Only a broken header
// or broken quoting ends it early.
func ReadMeasurements(path string, r io.Reader) ([]Measurement, error) {
	rd := &reader{path: path, csv: csv.NewReader(r)}
	rd.csv.FieldsPerRecord = -1 // counted here, to say which line
	if !rd.header() {
		return nil, errors.Join(rd.problems...)
	}
	var rows []Measurement
	for len(rows) < maxRows {
		record, err := rd.csv.Read()
		if err == io.EOF {
			rd.checkRows(rows)
			return rows, errors.Join(rd.problems...)
		}
		if err != nil {
			rd.problem(0, 0, format.Error{Err: err, Fix: "quote fields that hold commas or quotes"})
			return rows, errors.Join(rd.problems...)
		}
		if m, ok := rd.row(record); ok {
			rows = append(rows, m)
		}
	}
	rd.problem(0, 0, format.Error{Got: fmt.Sprintf("more than %d rows", maxRows), Want: "a measurements file"})
	return nil, errors.Join(rd.problems...)
}

type reader struct {
	path     string
	csv      *csv.Reader
	index    map[string]int // column → position in the record
	width    int
	problems []error
}

// problem files an error at a line and column; line 0 when the csv reader's own message has them.
func (rd *reader) problem(line, column int, e format.Error) {
	e.Path = rd.path
	if line > 0 {
		e.Path = fmt.Sprintf("%s:%d:%d", rd.path, line, column)
	}
	rd.problems = append(rd.problems, &e)
}

// Columns may stand in any order; a missing, doubled or unknown one ends the reading, because every row would be wrong.
func (rd *reader) header() bool {
	record, err := rd.csv.Read()
	if err != nil {
		rd.problem(1, 1, format.Error{Err: err, Want: "a header line: " + strings.Join(columns, ",")})
		return false
	}
	rd.index, rd.width = map[string]int{}, len(record)
	record[0] = strings.TrimPrefix(record[0], "\ufeff")
	for i, name := range record {
		_, column := rd.csv.FieldPos(i)
		if _, twice := rd.index[name]; twice {
			rd.problem(1, column, format.Error{Field: "header", Got: "column " + strconv.Quote(name) + " twice"})
		}
		rd.index[name] = i
		if !known(name) {
			rd.problem(1, column, format.Error{Field: "header", Got: "unknown column " + strconv.Quote(name), Fix: format.DidYouMean(name, columns)})
		}
	}
	for _, name := range columns {
		if _, ok := rd.index[name]; !ok {
			rd.problem(1, 1, format.Error{Field: "header", Got: "no column " + strconv.Quote(name), Want: "all of " + strings.Join(columns, ",")})
		}
	}
	return len(rd.problems) == 0
}

func known(column string) bool {
	for _, c := range columns {
		if c == column {
			return true
		}
	}
	return false
}

// row reads one record; false when something in it is wrong.
func (rd *reader) row(record []string) (Measurement, bool) {
	line, _ := rd.csv.FieldPos(0)
	if len(record) != rd.width {
		rd.problem(line, 1, format.Error{Got: fmt.Sprintf("%d fields", len(record)), Want: fmt.Sprintf("%d as in the header", rd.width)})
		return Measurement{}, false
	}
	before := len(rd.problems)
	f := fields{reader: rd, record: record, line: line}
	text := f.text
	first, last := f.integer("first_layer", 1<<12), f.integer("last_layer", 1<<12)
	m := Measurement{Line: line,
		Experiment: text("experiment"), SessionDate: text("session_date"), Source: text("source"),
		Device: text("device"), SoC: text("soc"), OS: text("os"), Model: text("model"), KVMode: text("kv_mode"), Layout: text("layout"),
		Context: f.integer("ctx", 1<<20), QueryTokens: f.integer("query_tokens", 1<<16), RealTokens: f.integer("real_tokens", 1<<20),
		WeightBits: f.integer("weight_bits", 32), GroupSize: f.integer("group_size", 1<<16),
		Component: text("component"), Lo: first, HasPLE: f.flag("has_ple"), HasHead: f.flag("has_head"),
		Seconds: f.number("ms") / 1e3, Timed: text("ms") != "", TokPerSec: f.number("tok_per_s"),
		ColdWarm: f.oneOf("cold_warm", "", "warm", "cold"), Quality: f.oneOf("quality", "A", "B", "X"),
		CrossCheck: text("cross_check"), Note: text("note")}
	if text("last_layer") != "" {
		m.Hi = last + 1
	}
	if len(rd.problems) == before {
		f.check(m)
	}
	return m, len(rd.problems) == before
}

// fields reads the fields of one record by column name.
type fields struct {
	*reader
	record []string
	line   int
}

func (f fields) text(column string) string { return f.record[f.index[column]] }

// bad files a problem with a field of the record.
func (f fields) bad(column string, e format.Error) {
	line, col := f.csv.FieldPos(f.index[column])
	e.Field = column
	if e.Got == "" {
		e.Got = strconv.Quote(f.text(column))
	}
	f.problem(line, col, e)
}

// Empty is zero, which stands for unknown in every column that is a count.
func (f fields) integer(column string, most int) int {
	s := f.text(column)
	if s == "" {
		return 0
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > most {
		f.bad(column, format.Error{Want: fmt.Sprintf("a whole number from 0 to %d", most)})
	}
	return n
}

// Infinity and NaN parse as numbers in Go and are no times.
func (f fields) number(column string) float64 {
	s := f.text(column)
	if s == "" {
		return 0
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
		f.bad(column, format.Error{Want: "a finite number, not negative", Fix: "leave the field empty if it was not measured"})
		return 0
	}
	return x
}

func (f fields) flag(column string) bool { return f.oneOf(column, "", "0", "1") == "1" }

// Case matters: a file that writes "a" for "A" may mean something else by it.
func (f fields) oneOf(column string, allowed ...string) string {
	s := f.text(column)
	for _, a := range allowed {
		if s == a {
			return s
		}
	}
	f.bad(column, format.Error{Want: strings.TrimPrefix(strings.Join(allowed, ", "), ", "), Fix: format.DidYouMean(s, allowed)})
	return ""
}
