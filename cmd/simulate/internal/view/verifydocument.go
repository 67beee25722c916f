package view

import (
	"fmt"
	"math"

	"anelab/cmd/simulate/internal/proof"
	"anelab/parity"
)

// number is a JSON number, or null where there is none: infinite and undefined distances.
type number float64

// MarshalJSON writes what is not finite as null.
func (n number) MarshalJSON() ([]byte, error) {
	if x := float64(n); math.IsNaN(x) || math.IsInf(x, 0) {
		return []byte("null"), nil
	}
	return []byte(exact(float64(n))), nil
}

type verifyDocument struct {
	Made
	Checkpoint string         `json:"checkpoint"`
	Layers     int            `json:"layers"`
	Layout     string         `json:"layout"`
	Packages   []string       `json:"packages"` // empty where none were verified
	OK         bool           `json:"ok"`
	Modes      []modeDocument `json:"modes"`
}

type modeDocument struct {
	Mode        string                   `json:"mode"`
	OK          bool                     `json:"ok"`
	Imported    int                      `json:"prompts_imported"`
	Warnings    []string                 `json:"warnings"`
	Weights     []packageWeightsDocument `json:"weights"` // of packages, for each chain of them
	Comparisons []comparisonDocument     `json:"comparisons"`
}

type packageWeightsDocument struct {
	Packages   int    `json:"packages"`
	Dense      int    `json:"stored_dense"`
	Compressed int    `json:"stored_compressed"`
	Wrong      int    `json:"wrong"`
	First      string `json:"first_wrong"` // "" if all are right
	Worst      string `json:"worst_compressed"`
	RelRMS     number `json:"worst_rel_rms"`
}

type comparisonDocument struct {
	Got         string            `json:"got"`
	Want        string            `json:"want"`
	OK          bool              `json:"ok"`
	Information string            `json:"information"` // "" where a target exists
	Cases       []string          `json:"cases"`
	Compared    int               `json:"tensors_compared"`
	Partings    int               `json:"tensors_out_of_tolerance"`
	Tensors     []tensorDocument  `json:"tensors"`
	Tokens      *tokensDocument   `json:"tokens"`
	Loudness    *loudnessDocument `json:"hidden_rms"`
	First       *partingDocument  `json:"first"`
}

type tensorDocument struct {
	Tensor    string            `json:"tensor"`
	Compared  int               `json:"compared"`
	Elements  int               `json:"elements"`
	Equal     int               `json:"equal"`
	MaxAbs    number            `json:"max_abs"`
	OfPeak    number            `json:"max_rel_to_peak"`
	MaxULP    int64             `json:"max_ulp"`
	Cosine    number            `json:"cosine"`
	RelRMS    number            `json:"rel_rms"`
	Argmax    argmaxDocument    `json:"argmax"`
	WorstIn   string            `json:"worst_in"`
	Tolerance toleranceDocument `json:"tolerance"`
	OK        bool              `json:"ok"`
}

type argmaxDocument struct {
	Rows      int    `json:"rows"`
	Agree     int    `json:"agree"`
	Ties      int    `json:"ties"`
	MinMargin number `json:"min_margin"`
}

type toleranceDocument struct {
	Exact  bool    `json:"exact"`
	Abs    float64 `json:"abs"`
	OfPeak float64 `json:"rel_to_peak"`
	MaxULP int64   `json:"max_ulp"`
}

type tokensDocument struct {
	Count int `json:"count"`
	Equal int `json:"equal"`
}

type loudnessDocument struct {
	Layers int    `json:"layers"`
	Tokens int    `json:"tokens"`
	MaxRel number `json:"max_rel"`
	OK     bool   `json:"ok"`
}

type partingDocument struct {
	Case   string `json:"case"`
	Tensor string `json:"tensor"`
	Op     string `json:"op"`    // that yields it, where graphs were compared
	Layer  int    `json:"layer"` // -1 outside the layers
	Chunk  string `json:"chunk"`
	Reason string `json:"reason"`
	MaxAbs number `json:"max_abs"`
	MaxULP int64  `json:"max_ulp"`
	Cosine number `json:"cosine"`
	Argmax string `json:"argmax"`
}

// Document is everything that was compared.
func (r *Verify) Document() any {
	d := verifyDocument{Made: r.Made, Checkpoint: r.Checkpoint, Layers: r.Layers, Layout: r.Layout, Packages: append([]string{}, r.Packages...), OK: r.OK(),
		Modes: []modeDocument{}}
	for _, result := range r.Results {
		m := modeDocument{Mode: result.Mode, OK: result.OK(), Imported: result.Imported, Warnings: append([]string{}, result.Warnings...),
			Weights: []packageWeightsDocument{}, Comparisons: []comparisonDocument{}}
		for _, w := range result.Weights {
			m.Weights = append(m.Weights, packageWeightsOf(w))
		}
		for i := range result.Comparisons {
			m.Comparisons = append(m.Comparisons, documentOf(&result.Comparisons[i]))
		}
		d.Modes = append(d.Modes, m)
	}
	return d
}

func packageWeightsOf(w *proof.Weights) packageWeightsDocument {
	d := packageWeightsDocument{Packages: w.Packages, Dense: w.Dense, Compressed: w.Others, Wrong: w.Wrong, Worst: w.Worst, RelRMS: number(w.WorstRMS)}
	if w.First != nil {
		d.First = w.First.Name
	}
	return d
}

func documentOf(c *proof.Comparison) comparisonDocument {
	d := comparisonDocument{Got: c.Got, Want: c.Want, OK: c.OK(), Information: c.Target.Information, Cases: c.Cases, Compared: c.Taps,
		Partings: c.Partings, Tensors: []tensorDocument{}}
	for i := range c.Tensors {
		d.Tensors = append(d.Tensors, tensorOf(&c.Tensors[i]))
	}
	if t := c.Tokens; t != nil {
		d.Tokens = &tokensDocument{t.Count, t.Equal}
	}
	if l := c.Loudness; l != nil {
		d.Loudness = &loudnessDocument{l.Layers, l.Tokens, number(l.MaxRel), l.OK}
	}
	if f := c.First; f != nil {
		x := &f.Err.Difference
		d.First = &partingDocument{f.Case, f.Tensor, f.Op, f.Layer, f.Chunk, f.Err.Error(), number(x.MaxAbs), x.MaxULP, number(x.Cosine), x.Argmax.String()}
	}
	return d
}

func tensorOf(t *proof.Tensor) tensorDocument {
	w := &t.Worst
	return tensorDocument{Tensor: string(t.Point), Compared: t.Taps, Elements: t.Elements, Equal: t.Equal, MaxAbs: number(w.MaxAbs), OfPeak: number(w.PeakRel()),
		MaxULP: w.MaxULP, Cosine: number(w.Cosine), RelRMS: number(w.RelRMS), Argmax: argmaxOf(t.Choices),
		WorstIn: t.WorstIn, Tolerance: toleranceOf(t.Tolerance), OK: t.OK}
}

func argmaxOf(a parity.Argmax) argmaxDocument {
	return argmaxDocument{a.Rows, a.Agree, a.Ties, number(a.MinMargin)}
}

func toleranceOf(t parity.Tolerance) toleranceDocument {
	return toleranceDocument{t.Exact(), t.Abs, t.PeakRel, t.MaxULP}
}

// Header of the records.
func (r *Verify) Header() []string {
	return []string{"mode", "got", "want", "tensor", "compared", "elements", "equal", "max_abs", "max_rel_to_peak", "max_ulp", "cosine", "rel_rms", "worst_in", "ok"}
}

// Records are the tensors of every comparison.
func (r *Verify) Records() [][]string {
	var all [][]string
	for _, result := range r.Results {
		for i := range result.Comparisons {
			c := &result.Comparisons[i]
			for k := range c.Tensors {
				t, w := &c.Tensors[k], &c.Tensors[k].Worst
				all = append(all, []string{result.Mode, c.Got, c.Want, string(t.Point), fmt.Sprint(t.Taps), fmt.Sprint(t.Elements), fmt.Sprint(t.Equal),
					exact(w.MaxAbs), exact(w.PeakRel()), fmt.Sprint(w.MaxULP), exact(w.Cosine), exact(w.RelRMS), t.WorstIn, fmt.Sprint(t.OK)})
			}
		}
	}
	return all
}
