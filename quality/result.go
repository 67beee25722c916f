package quality

import (
	"bytes"
	"encoding/json"
	"strings"

	"anelab/internal/format"
)

// Result is a unit with what it counted: what a worker hands back, and what a file named by [Result.File] holds.
type Result struct {
	Unit Unit `json:"unit"`
	Sums Sums `json:"sums"`
}

// File is the name of the file of a unit's result.
func (u Unit) File() string { return u.Name() + ".json" }

// Encode is the one JSON form of a result: equal results are equal bytes.
func (r Result) Encode() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", " ")
	if err := e.Encode(r); err != nil {
		panic("quality: a result has no JSON form: " + err.Error())
	}
	return b.Bytes()
}

// ParseResult reads a result and refuses one that is not of the unit asked for: the content of a file must be that of its name.
func ParseResult(path string, data []byte, want Unit) (Sums, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var r Result
	if err := d.Decode(&r); err != nil {
		return Sums{}, &format.Error{Path: path, Err: err, Fix: "delete the file; it is computed again"}
	}
	rest := strings.TrimSpace(string(data[d.InputOffset():]))
	if r.Unit.Name() != want.Name() || rest != "" || r.Sums.Sequences != want.Count {
		return Sums{}, &format.Error{Path: path, Got: "a result of unit " + r.Unit.Name(), Want: want.Name() + ", whole", Fix: "delete the file; it is computed again"}
	}
	return r.Sums, nil
}
