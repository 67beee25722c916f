package evidence

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"anelab/internal/format"
)

// Effect is one change measured before and after.
type Effect struct {
	Line      int    // in its file
	ID        string // "layout-4to3-iphone-tps"
	Baseline  string // experiment before
	Changed   string // experiment after
	Variable  string // what was changed
	Before    string // as printed; a number or a category such as "compile-fail"
	After     string
	Unit      string // "ms", "tok/s", "% tok/s", "ms added" or "category"
	Predicted string // what its authors expected
	Source    string
	Note      string
}

var effectColumns = []string{"effect", "baseline_experiment", "changed_experiment", "variable", "before", "after", "unit",
	"predicted_by_docs", "source", "note"}

// ReadEffects reads a table of effects.
func ReadEffects(path string, r io.Reader) ([]Effect, error) {
	var all []Effect
	seen := map[string]int{}
	err := readTable(path, r, effectColumns, func(line int, f []string) error {
		e := Effect{Line: line, ID: f[0], Baseline: f[1], Changed: f[2], Variable: f[3], Before: f[4], After: f[5], Unit: f[6],
			Predicted: f[7], Source: f[8], Note: f[9]}
		if first, twice := seen[e.ID]; twice || e.ID == "" {
			return &format.Error{Path: fmt.Sprintf("%s:%d", path, line), Field: "effect", Got: fmt.Sprintf("%q, as in line %d", e.ID, first), Want: "a name of its own"}
		}
		seen[e.ID] = line
		all = append(all, e)
		return nil
	})
	return all, err
}

// Times returns both sides in seconds, rates turned into times per token. The result is false for effects in other units
// and for those with only one side.
func (e Effect) Times() (before, after float64, ok bool) {
	before, ok1 := seconds(e.Before, e.Unit)
	after, ok2 := seconds(e.After, e.Unit)
	return before, after, ok1 && ok2
}

// seconds reads one side of an effect.
func seconds(text, unit string) (float64, bool) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x > 0) || math.IsInf(x, 0) {
		return 0, false
	}
	switch unit {
	case "ms":
		return x / 1e3, true
	case "tok/s":
		return 1 / x, true
	}
	return 0, false
}

// FindEffect looks an effect of the program's own table up by its name.
func FindEffect(id string) (Effect, bool) {
	for _, e := range shippedEffects() {
		if e.ID == id {
			return e, true
		}
	}
	return Effect{}, false
}
