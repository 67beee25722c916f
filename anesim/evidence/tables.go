package evidence

import (
	"bytes"
	_ "embed" // the tables
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"anelab/internal/format"
)

//go:embed effects.csv
var effectsCSV []byte

//go:embed limits.csv
var limitsCSV []byte

// Effects lists the paired effects that come with the program, in the order of the file.
func Effects() []Effect { return slices.Clone(shippedEffects()) }

// Limits lists the limits that come with the program, in the order of the file.
func Limits() []Limit { return slices.Clone(shippedLimits()) }

var shippedEffects = sync.OnceValue(func() []Effect {
	all, err := ReadEffects("effects.csv", bytes.NewReader(effectsCSV))
	if err != nil {
		panic("evidence: the embedded effects.csv is broken")
	}
	return all
})

var shippedLimits = sync.OnceValue(func() []Limit {
	all, err := ReadLimits("limits.csv", bytes.NewReader(limitsCSV))
	if err != nil {
		panic("evidence: the embedded limits.csv is broken")
	}
	return all
})

// maxRows is far above any table made by hand.
const maxRows = 1 << 16

// readTable reads a CSV file whose header must be exactly the columns; records come with their lines.
func readTable(path string, r io.Reader, columns []string, each func(line int, record []string) error) error {
	rd := csv.NewReader(r)
	rd.FieldsPerRecord = len(columns)
	header, err := rd.Read()
	if err != nil {
		return &format.Error{Path: path, Err: err, Want: "a header line: " + strings.Join(columns, ",")}
	}
	header[0] = strings.TrimPrefix(header[0], "\ufeff")
	if !slices.Equal(header, columns) {
		return &format.Error{Path: path + ":1", Field: "header", Got: strings.Join(header, ","), Want: strings.Join(columns, ",")}
	}
	for range maxRows {
		record, err := rd.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return &format.Error{Path: path, Err: err, Fix: "quote fields that hold commas or quotes"}
		}
		line, _ := rd.FieldPos(0)
		if err := each(line, record); err != nil {
			return err
		}
	}
	return &format.Error{Path: path, Got: fmt.Sprintf("more than %d rows", maxRows), Want: "a table of observations"}
}
