package devices

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml"

	"anelab/anesim"
	"anelab/internal/format"
)

// formatVersion of device files.
const formatVersion = "anelab-device/1"

// maxFile is far above a file written by calibration.
const maxFile = 1 << 20

// file mirrors a device file.
type file struct {
	Format      string              `yaml:"format"`
	Name        string              `yaml:"name"`
	Title       string              `yaml:"title"`
	Class       string              `yaml:"class"`
	SoC         string              `yaml:"soc"`
	MeasuredAs  []string            `yaml:"measured_as"`
	Noise       noise               `yaml:"noise"`
	Constants   map[string]constant `yaml:"constants"`
	Correlation [][]float64         `yaml:"correlation"` // lower triangle, chunk constants in the order of the terms
	Evidence    *evidence           `yaml:"evidence"`
}

type noise struct {
	Chunk   float64 `yaml:"chunk"`
	Session float64 `yaml:"session"`
	Step    float64 `yaml:"step"`
	Source  string  `yaml:"source"`
}

type constant struct {
	Value      *float64 `yaml:"value"`
	SD         *float64 `yaml:"sd"`
	Unit       string   `yaml:"unit"`
	Source     string   `yaml:"source"`
	Confidence string   `yaml:"confidence"`
	Group      string   `yaml:"group"`
	Prior      prior    `yaml:"prior"`
}

type prior struct {
	Value  *float64 `yaml:"value"`
	SD     *float64 `yaml:"sd"`
	Source string   `yaml:"source"`
}

type evidence struct {
	Experiments    int        `yaml:"experiments"`
	Rows           int        `yaml:"rows"`
	WorstMiss      float64    `yaml:"worst_miss"`
	IntervalFactor float64    `yaml:"interval_factor"`
	HostSDSeconds  float64    `yaml:"host_sd_s"`
	Weights        []string   `yaml:"weights"`
	MaxLayers      int        `yaml:"max_layers"`
	Models         []model    `yaml:"models"`
	Contexts       []context  `yaml:"contexts"`
	Chunks         []measured `yaml:"chunks"`
}

type model struct {
	Name       string `yaml:"name"`
	Layers     int    `yaml:"layers"`
	HiddenSize int    `yaml:"hidden_size"`
}

type context struct {
	Context     int      `yaml:"context"`
	Experiments int      `yaml:"experiments"`
	Layouts     []string `yaml:"layouts"`
}

type measured struct {
	Model       string   `yaml:"model"`
	Chunk       string   `yaml:"chunk"`
	Context     int      `yaml:"context"`
	Weights     string   `yaml:"weights"`
	CopyBack    string   `yaml:"copyback"`
	Rows        int      `yaml:"rows"`
	Experiments int      `yaml:"experiments"`
	Sessions    []string `yaml:"sessions"`
	MedianS     float64  `yaml:"median_s"`
	MinS        float64  `yaml:"min_s"`
	MaxS        float64  `yaml:"max_s"`
}

// Read parses a device file. The path is for messages only.
func Read(path string, data []byte) (anesim.Device, error) {
	var f file
	if len(data) > maxFile {
		return anesim.Device{}, &format.Error{Path: path, Got: fmt.Sprintf("%d bytes", len(data)), Want: "a device file of at most 1 MiB"}
	}
	if err := yaml.UnmarshalWithOptions(data, &f, yaml.Strict()); err != nil {
		return anesim.Device{}, syntaxError(path, err)
	}
	c := converter{path: path}
	d := c.device(&f)
	if c.err != nil {
		return anesim.Device{}, c.err
	}
	return d, nil
}

var unknownField = regexp.MustCompile(`unknown field "([^"]*)"`)

// syntaxError puts the parser's message into our form: line, column, and a guess at a mistyped key.
func syntaxError(path string, err error) error {
	out := &format.Error{Path: path, Err: err}
	var y yaml.Error
	if errors.As(err, &y) {
		out.Err, out.Got = nil, y.GetMessage()
		if tok := y.GetToken(); tok != nil && tok.Position != nil {
			out.Path = fmt.Sprintf("%s:%d:%d", path, tok.Position.Line, tok.Position.Column)
		}
	}
	if m := unknownField.FindStringSubmatch(out.Got); m != nil {
		out.Fix = format.DidYouMean(m[1], keys)
	}
	return out
}

// keys that a device file may hold, for suggestions.
var keys = []string{"format", "name", "title", "class", "soc", "measured_as", "noise", "constants", "correlation", "evidence",
	"chunk", "session", "step", "source", "value", "sd", "unit", "confidence", "group", "prior", "experiments", "rows", "worst_miss",
	"interval_factor", "host_sd_s", "weights", "max_layers", "models", "contexts", "chunks", "layers",
	"hidden_size", "context", "layouts", "model", "copyback", "sessions", "median_s", "min_s", "max_s"}

// converter checks a file and keeps the first fault.
type converter struct {
	path string
	err  error
}

// The first fault is told; later ones often follow from it.
func (c *converter) fail(field, got, want, fix string) {
	if c.err == nil {
		c.err = &format.Error{Path: c.path, Field: field, Got: got, Want: want, Fix: fix}
	}
}

// A file without evidence is a device that nobody measured: whatever its values say, its priors count.
func (c *converter) device(f *file) anesim.Device {
	if f.Format != formatVersion {
		c.fail("format", strconv.Quote(f.Format), strconv.Quote(formatVersion), "")
	}
	if f.Name == "" || f.Title == "" {
		c.fail("name", "nothing", "a name and a title", "")
	}
	if class := anesim.Class(f.Class); class != anesim.IPhone && class != anesim.Mac {
		c.fail("class", strconv.Quote(f.Class), `"iphone" or "mac"`, format.DidYouMean(f.Class, []string{"iphone", "mac"}))
	}
	d := anesim.Device{Name: f.Name, Title: f.Title, Class: anesim.Class(f.Class), SoC: f.SoC, MeasuredAs: f.MeasuredAs,
		Noise: anesim.Noise{Chunk: c.positive("noise.chunk", &f.Noise.Chunk), Session: c.positive("noise.session", &f.Noise.Session),
			Step: c.positive("noise.step", &f.Noise.Step), Source: f.Noise.Source}}
	for name := range f.Constants {
		if _, ok := anesim.ParseTerm(name); !ok {
			c.fail("constants", strconv.Quote(name), "a term of the cost model", format.DidYouMean(name, anesim.TermNames()))
		}
	}
	for t := range anesim.NumTerms {
		k, ok := f.Constants[t.String()]
		if !ok {
			c.fail("constants", "no "+t.String(), "all of the terms", "")
			continue
		}
		d.Constants[t] = c.constant("constants."+t.String(), &k, t, f.Evidence != nil)
	}
	if f.Evidence == nil {
		return d.FromPriors()
	}
	c.correlation(&d, f.Correlation)
	d.Evidence = c.evidence(f.Evidence)
	return d
}

// A number without a unit, a source and a group is refused: nobody could judge it later.
func (c *converter) constant(field string, k *constant, t anesim.Term, fitted bool) anesim.Constant {
	if k.Unit != t.Unit() {
		c.fail(field+".unit", strconv.Quote(k.Unit), strconv.Quote(t.Unit()), "")
	}
	if k.Prior.Source == "" || k.Group == "" {
		c.fail(field, "a constant without group or prior.source", "to know where each number comes from", "")
	}
	out := anesim.Constant{Unit: k.Unit, Source: k.Source, Confidence: k.Confidence, Group: k.Group,
		Prior: anesim.Prior{Value: c.atLeastZero(field+".prior.value", k.Prior.Value), SD: c.positive(field+".prior.sd", k.Prior.SD), Source: k.Prior.Source}}
	if fitted {
		out.Value, out.SD = c.atLeastZero(field+".value", k.Value), c.positive(field+".sd", k.SD)
		if !slices.Contains([]string{"high", "medium", "low"}, k.Confidence) {
			c.fail(field+".confidence", strconv.Quote(k.Confidence), "high, medium or low", "")
		}
	}
	return out
}

// YAML has .nan and .inf, which are numbers and no constants.
func (c *converter) atLeastZero(field string, x *float64) float64 {
	switch {
	case x == nil:
		c.fail(field, "nothing", "a number", "")
		return 0
	case math.IsNaN(*x) || math.IsInf(*x, 0) || *x < 0:
		c.fail(field, fmt.Sprint(*x), "a finite number, not negative", "")
	}
	return *x
}

func (c *converter) positive(field string, x *float64) float64 {
	v := c.atLeastZero(field, x)
	if v == 0 {
		c.fail(field, "0", "a number above zero", "")
	}
	return v
}

// Rows of the lower triangle, the diagonal written out so that a shifted row shows.
func (c *converter) correlation(d *anesim.Device, rows [][]float64) {
	n := len(d.Correlation)
	if len(rows) != n {
		c.fail("correlation", fmt.Sprintf("%d rows", len(rows)), fmt.Sprintf("%d, one per chunk constant", n), "")
		return
	}
	for i, row := range rows {
		if len(row) != i+1 || row[i] != 1 {
			c.fail(fmt.Sprintf("correlation[%d]", i), fmt.Sprint(row), fmt.Sprintf("%d numbers, the last 1", i+1), "")
			return
		}
		for j, x := range row {
			if !(x >= -1 && x <= 1) {
				c.fail(fmt.Sprintf("correlation[%d]", i), fmt.Sprint(x), "a number from −1 to 1", "")
			}
			d.Correlation[i][j], d.Correlation[j][i] = x, x
		}
	}
}

// Evidence decides how wide ranges are, so it is checked like constants.
func (c *converter) evidence(e *evidence) anesim.Evidence {
	out := anesim.Evidence{Experiments: e.Experiments, Rows: e.Rows, WorstMiss: c.atLeastZero("evidence.worst_miss", &e.WorstMiss),
		IntervalFactor: c.positive("evidence.interval_factor", &e.IntervalFactor), HostSDSeconds: c.atLeastZero("evidence.host_sd_s", &e.HostSDSeconds),
		Weights: e.Weights, MaxLayers: e.MaxLayers}
	for _, m := range e.Models {
		out.Models = append(out.Models, anesim.ModelEvidence(m))
	}
	for _, k := range e.Contexts {
		if k.Context <= 0 {
			c.fail("evidence.contexts", fmt.Sprint(k.Context), "a context above zero", "")
		}
		out.Contexts = append(out.Contexts, anesim.ContextEvidence(k))
	}
	for _, m := range e.Chunks {
		for _, s := range []float64{m.MedianS, m.MinS, m.MaxS} {
			c.positive("evidence.chunks", &s)
		}
		out.Chunks = append(out.Chunks, anesim.MeasuredChunk{Model: m.Model, Chunk: m.Chunk, Context: m.Context, Weights: m.Weights,
			CopyBack: anesim.CopyBack(m.CopyBack), Rows: m.Rows, Experiments: m.Experiments, Sessions: m.Sessions,
			MedianSeconds: m.MedianS, MinSeconds: m.MinS, MaxSeconds: m.MaxS})
	}
	if e.Experiments < 1 {
		c.fail("evidence.experiments", fmt.Sprint(e.Experiments), "at least 1", "leave evidence out for a device that was not measured")
	}
	return out
}
