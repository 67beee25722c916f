package quality

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"anelab/attention"
	"anelab/internal/arith"
	"anelab/internal/format"
	"anelab/quant"
)

// Task is something to count.
type Task string

// Tasks, in the order in which they are shown.
const (
	Recall    Task = "recall"
	Passkey   Task = "passkey"
	PPL       Task = "ppl"
	Agreement Task = "agreement"
)

// Tasks are all of them.
var Tasks = []Task{Recall, Passkey, PPL, Agreement}

// ParseTasks reads names of tasks.
func ParseTasks(names []string) ([]Task, error) {
	var all []Task
	for _, n := range names {
		t := Task(n)
		if !slices.Contains(Tasks, t) {
			var known []string
			for _, k := range Tasks {
				known = append(known, string(k))
			}
			return nil, &format.Error{Field: "tasks", Got: n, Fix: format.DidYouMean(n, known)}
		}
		if !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b Task) int { return slices.Index(Tasks, a) - slices.Index(Tasks, b) })
	return all, nil
}

// Unit is one piece of work. Everything that the result depends on is in it and nothing else: two units with one name have one
// result.
type Unit struct {
	Checkpoint string         `json:"checkpoint_sha256"` // [Fingerprint]
	Set        string         `json:"set_sha256"`        // Set.Sum
	First      int            `json:"first"`             // first sequence
	Count      int            `json:"count"`             // sequences
	Tasks      []Task         `json:"tasks"`             //
	Mode       string         `json:"mode"`              //
	Attn       []LayerSetting `json:"attn,omitempty"`    // policies that differ from the model's own, ascending by layer
	Weights    []LayerSetting `json:"weights,omitempty"` // encodings that differ from the checkpoint's, ascending by layer
	Tables     string         `json:"tables,omitempty"`  // encoding of the two embedding tables and the head tied to one
	Head       string         `json:"head,omitempty"`    // encoding of the head alone, the table staying as it is
}

// LayerSetting is the policy or the encoding of one layer; layer −1 stands for the linears outside the layers.
type LayerSetting struct {
	Layer int    `json:"layer"`
	Value string `json:"value"`
}

// outside is the layer of a [LayerSetting] for what belongs to no layer.
const outside = -1

// Name is the content hash of the unit, 64 hex digits.
func (u Unit) Name() string {
	text, err := json.Marshal(u)
	if err != nil {
		panic("quality: a unit has no JSON form: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Parts cuts a unit into units of at most n sequences, in order: the same cut whoever makes it, so that a rerun finds the parts
// that are done.
func (u Unit) Parts(n int) []Unit {
	var all []Unit
	for first := u.First; first < u.First+u.Count; first += n {
		part := u
		part.First, part.Count = first, min(n, u.First+u.Count-first)
		all = append(all, part)
	}
	return all
}

// has reports whether a task is asked for.
func (u Unit) has(t Task) bool { return slices.Contains(u.Tasks, t) }

// check refuses a unit whose text forms are wrong, whatever the model.
func (u Unit) check() error {
	if !slices.Contains(arith.Modes, u.Mode) {
		return &format.Error{Field: "mode", Got: u.Mode, Fix: format.DidYouMean(u.Mode, arith.Modes)}
	}
	if len(u.Tasks) == 0 || u.First < 0 || u.Count < 1 {
		return &format.Error{Field: "unit", Got: fmt.Sprintf("%d tasks over %d sequences from %d", len(u.Tasks), u.Count, u.First), Want: "at least one of each"}
	}
	names := make([]string, len(u.Tasks))
	for i, t := range u.Tasks {
		names[i] = string(t)
	}
	if _, err := ParseTasks(names); err != nil {
		return err
	}
	_, err := u.policies()
	return err
}

// policies parses the attention policies.
func (u Unit) policies() (map[int]attention.Policy, error) {
	all := map[int]attention.Policy{}
	for _, a := range u.Attn {
		p, err := attention.Parse(a.Value)
		if err != nil {
			return nil, err
		}
		all[a.Layer] = p
	}
	return all, nil
}

// SetAttn records policies by layer.
func (u *Unit) SetAttn(policies map[int]attention.Policy) {
	u.Attn = nil
	for layer, p := range policies {
		u.Attn = append(u.Attn, LayerSetting{layer, p.String()})
	}
	slices.SortFunc(u.Attn, func(a, b LayerSetting) int { return a.Layer - b.Layer })
}

// SetLayers gives the linears of layers [lo, hi) an encoding; from layer 0 on also the projection of the per-layer inputs, which is of
// the first chunk.
func (u *Unit) SetLayers(lo, hi int, e quant.Encoding) {
	if lo == 0 && hi > 0 {
		lo = outside
	}
	u.Weights = slices.DeleteFunc(u.Weights, func(w LayerSetting) bool { return lo <= w.Layer && w.Layer < hi })
	for l := lo; l < hi; l++ {
		u.Weights = append(u.Weights, LayerSetting{l, e.String()})
	}
	slices.SortFunc(u.Weights, func(a, b LayerSetting) int { return a.Layer - b.Layer })
}

// tablesToo at the end of an encoding extends it to the embedding tables.
const tablesToo = "+tables"

// Stored names the encoding that the checkpoint has.
const Stored = "stored"

// SetWeights gives every linear one encoding: "stored" for the checkpoint's own, an encoding, or one with "+tables" for the embedding
// tables and the head tied to them as well.
func (u *Unit) SetWeights(text string, layers int) error {
	u.Weights, u.Tables = nil, ""
	if text == Stored {
		return nil
	}
	name, tables := strings.CutSuffix(text, tablesToo)
	e, err := quant.ParseEncoding(name)
	if err != nil {
		return err
	}
	for l := outside; l < layers; l++ {
		u.Weights = append(u.Weights, LayerSetting{l, e.String()})
	}
	if tables {
		u.Tables = e.String()
	}
	return nil
}
