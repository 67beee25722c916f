package checkpoint

import (
	"encoding/json"
	"os"
	"strings"

	"anelab"
	"anelab/gemma4"
	"anelab/internal/checkpoint/formula"
	"anelab/internal/format"
)

// formulaScheme starts the path of a model whose weights are computed.
const formulaScheme = "formula:"

// formulaModels are the models of golden/formula.md.
var formulaModels = []string{"e2b-10L", "e2b-full"}

// description is a model of computed weights on disk: the files golden/formula/*.json.
type description struct {
	Name   string          `json:"name"`
	Seed   string          `json:"seed"`
	Config json.RawMessage `json:"config"`
}

// openFormula opens a model by name, or by the path of its description.
func openFormula(name string) (*Checkpoint, error) {
	switch {
	case name == "e2b-10L":
		path := "testdata/golden/formula/e2b-10L.json"
		text, err := anelab.Files.ReadFile(path)
		if err != nil {
			return nil, err
		}
		return openDescription(path, text)
	case name == "e2b-full":
		return openFullE2B()
	case strings.HasSuffix(name, ".json"):
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, &format.Error{Path: name, Err: err}
		}
		return openDescription(name, text)
	}
	return nil, &format.Error{Path: formulaScheme + name, Got: "unknown model", Want: "a name or the path of a .json description",
		Fix: format.DidYouMean(name, formulaModels)}
}

func openDescription(path string, text []byte) (*Checkpoint, error) {
	var d description
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, &format.Error{Path: path, Err: err}
	}
	if d.Name == "" || d.Seed == "" {
		return nil, &format.Error{Path: path, Got: "no name or no seed", Want: "name, seed and config"}
	}
	c, err := gemma4.ParseConfig(path, d.Config)
	if err != nil {
		return nil, err
	}
	return fromFormula(d.Name, d.Seed, c)
}

// openFullE2B is the published E2B with a vocabulary small enough to compute.
func openFullE2B() (*Checkpoint, error) {
	path := "testdata/configs/e2b.json"
	text, err := anelab.Files.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c, err := gemma4.ParseConfig(path, text)
	if err != nil {
		return nil, err
	}
	c.VocabSize, c.VocabSizePerLayerInput = 4096, 4096
	return fromFormula("e2b-full", "golden-full", c)
}

func fromFormula(name, seed string, c gemma4.Config) (*Checkpoint, error) {
	want, err := shapes(c)
	if err != nil {
		return nil, err
	}
	w, err := formula.New(name, seed, want)
	if err != nil {
		return nil, err
	}
	return resolve(c, w)
}
