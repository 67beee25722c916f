package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"anelab/anesim"
	"anelab/cmd/simulate/internal/console"
	"anelab/internal/format"
)

// scored is what is left of files whose rows are predicted, not fitted: a row that cannot be right costs nothing but itself.
type scored struct {
	rows     []anesim.Measurement
	problems []string // by line
}

// readScored reads files one behind the other. What is wrong with single rows is printed and left out; a file without a good
// row is an error.
func readScored(c *console.Console, paths []string, log *logFlag) (scored, error) {
	all := scored{problems: []string{}}
	for _, path := range paths {
		rows, err := readMeasurements(c, path, log)
		switch {
		case err != nil && len(rows) == 0:
			return all, err
		case err != nil:
			rows = all.leaveOut(c, nameOfInput(path), rows, flatten(err))
		}
		all.rows = append(all.rows, rows...)
	}
	return all, nil
}

// leaveOut says what is wrong and returns the rows that nothing is wrong with. Faults of rows have the line behind the path.
func (s *scored) leaveOut(c *console.Console, path string, rows []anesim.Measurement, faults []error) []anesim.Measurement {
	for _, fault := range faults {
		fmt.Fprintf(c.Err, "simulate: %v\n", fault)
		s.problems = append(s.problems, fault.Error())
	}
	rows = slices.DeleteFunc(rows, func(m anesim.Measurement) bool {
		place := fmt.Sprintf("%s:%d:", path, m.Line)
		return slices.ContainsFunc(faults, func(err error) bool {
			var fault *format.Error
			return errors.As(err, &fault) && strings.HasPrefix(fault.Path, place)
		})
	})
	c.Warn(fmt.Sprintf("%s: %s; the other %d rows are scored", path, count(len(faults), "fault"), len(rows)))
	return rows
}
