package recorded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"anelab/internal/format"
	"anelab/parity"
)

// Case is one recorded call.
type Case struct {
	Name     string // "" in a file without cases
	Function string // "" if not said
	State    StateFrom
}

// StateFrom says what the states of a call start from.
type StateFrom string

// Where states come from: there are none, zeros, the case before, or the file.
const (
	NoState    StateFrom = "none"
	ZeroState  StateFrom = "zero"
	CarryState StateFrom = "carry"
	GivenState StateFrom = "given"
)

// entry is what an index says about one program.
type entry struct {
	Cases      []Case           `json:"cases"`
	Exact      exactness        `json:"exact"`
	Tolerance  map[string]bound `json:"tolerance"`
	FreeTokens []string         `json:"free_tokens"`
}

// bound is |got − want| ≤ atol + rtol·|want| for every element, and RMS(got − want) ≤ rel_rms·RMS(want).
type bound struct {
	Atol   float64 `json:"atol"`
	Rtol   float64 `json:"rtol"`
	RelRMS float64 `json:"rel_rms"`
}

// exactness is true, false, or "fp32" for ops that are exact in float32; both kinds must be met bit for bit.
type exactness bool

// UnmarshalJSON implements json.Unmarshaler.
func (e *exactness) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case "false", "null":
		*e = false
	case "true", `"fp32"`:
		*e = true
	default:
		return fmt.Errorf("exact is %s, want true, false or \"fp32\"", text)
	}
	return nil
}

const (
	indexName = "index.json"
	mostIndex = 8 << 20
)

// readIndex finds the entry of a name in the index of a folder; nil if there is no index, or no such entry.
func readIndex(folder, name string) (*entry, error) {
	path := filepath.Join(folder, indexName)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && info.Size() > mostIndex {
		return nil, &format.Error{Path: path, Got: fmt.Sprintf("%d bytes", info.Size()), Want: fmt.Sprintf("at most %d", mostIndex)}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, &format.Error{Path: path, Err: err}
	}
	return parseIndex(path, name, text)
}

func parseIndex(path, name string, text []byte) (*entry, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, &format.Error{Path: path, Err: err}
	}
	raw, ok := all[name]
	if !ok || strings.HasPrefix(name, "_") {
		return nil, nil
	}
	e := &entry{}
	if err := json.Unmarshal(raw, e); err != nil {
		return nil, &format.Error{Path: path, Field: name, Err: err}
	}
	return e, e.check(path, name)
}

func (e *entry) check(path, name string) error {
	seen := map[string]bool{}
	for _, c := range e.Cases {
		switch {
		case c.Name == "" || seen[c.Name]:
			return &format.Error{Path: path, Field: name + "/cases", Got: fmt.Sprintf("the name %q", c.Name), Want: "a name of its own for every case"}
		case c.State != "" && c.State != NoState && c.State != ZeroState && c.State != CarryState && c.State != GivenState:
			return &format.Error{Path: path, Field: name + "/" + c.Name, Got: fmt.Sprintf("state %q", c.State), Want: "none, zero, carry or given"}
		}
		seen[c.Name] = true
	}
	for output, b := range e.Tolerance {
		for _, x := range []float64{b.Atol, b.Rtol, b.RelRMS} {
			if !(x >= 0) || math.IsInf(x, 0) {
				return &format.Error{Path: path, Field: name + "/tolerance/" + output, Got: fmt.Sprint(x), Want: "a number of at least 0"}
			}
		}
	}
	return nil
}

// tolerance is what is stated for an output; states are one, whatever their names.
func (e *entry) tolerance(output string) (parity.Tolerance, bool) {
	if e.Exact {
		return parity.Tolerance{}, true
	}
	b, ok := e.Tolerance[output]
	return parity.Tolerance{Abs: b.Atol, Rel: b.Rtol, MaxRelRMS: b.RelRMS}, ok
}

// allStates is the key of the tolerance for states.
const allStates = "states"
