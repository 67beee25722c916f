package evidence

import (
	"fmt"
	"io"
	"strconv"

	"anelab/internal/format"
)

// Limit is one observation about what the tool chain takes.
type Limit struct {
	Line      int    // in its file
	Limit     string // what it is about: "layers per function"
	Condition string // what was tried
	Device    string
	Outcome   string
	Kind      string // "measured" or "reported"
	Source    string
}

var limitColumns = []string{"limit", "condition", "device", "outcome", "evidence", "source"}

// ReadLimits reads a table of limits.
func ReadLimits(path string, r io.Reader) ([]Limit, error) {
	var all []Limit
	err := readTable(path, r, limitColumns, func(line int, f []string) error {
		l := Limit{Line: line, Limit: f[0], Condition: f[1], Device: f[2], Outcome: f[3], Kind: f[4], Source: f[5]}
		if l.Kind != "measured" && l.Kind != "reported" {
			return &format.Error{Path: fmt.Sprintf("%s:%d", path, line), Field: "evidence", Got: strconv.Quote(l.Kind), Want: `"measured" or "reported"`}
		}
		all = append(all, l)
		return nil
	})
	return all, err
}
