package layoutfile

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/goccy/go-yaml"

	"anelab/chunking"
	"anelab/quant"
)

// Format is the notation of a layout file.
type Format uint8

// YAML for people, JSON for programs; [Read] tells them apart by itself.
const (
	YAML Format = iota
	JSON
)

// document is the file as written: defaults are left out, as in layout text.
type document struct {
	Context int      `yaml:"context,omitempty" json:"context,omitempty"`
	Tokens  int      `yaml:"tokens,omitempty" json:"tokens,omitempty"`
	Attn    []policy `yaml:"attn,omitempty" json:"attn,omitempty"`
	Chunks  []chunk  `yaml:"chunks" json:"chunks"`
}

type policy struct {
	Layer  *int   `yaml:"layer,omitempty" json:"layer,omitempty"`
	Policy string `yaml:"policy" json:"policy"`
}

type chunk struct {
	Layers  string `yaml:"layers,omitempty" json:"layers,omitempty"`
	Head    bool   `yaml:"head,omitempty" json:"head,omitempty"`
	Weights string `yaml:"weights,omitempty" json:"weights,omitempty"`
}

// Write writes a layout so that [Read] returns the same value.
func Write(w io.Writer, l chunking.Layout, f Format) error {
	d := document{Context: l.Context, Tokens: l.QueryTokens, Chunks: make([]chunk, len(l.Cuts))}
	for _, a := range l.Attn {
		p := policy{Policy: a.Policy}
		if a.Layer >= 0 {
			p.Layer = &a.Layer
		}
		d.Attn = append(d.Attn, p)
	}
	for i, c := range l.Cuts {
		d.Chunks[i] = chunk{Layers: layers(c), Head: c.Head}
		if c.Weights != (quant.Encoding{}) {
			d.Chunks[i].Weights = c.Weights.String()
		}
	}
	text, err := marshal(d, f)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

func marshal(d document, f Format) ([]byte, error) {
	if f == YAML {
		return yaml.Marshal(d)
	}
	text, err := json.MarshalIndent(d, "", "  ")
	return append(text, '\n'), err
}

// layers is the range without head and weights, which have fields of their own; nothing for the head alone.
func layers(c chunking.Cut) string {
	return strings.TrimPrefix(chunking.Cut{Lo: c.Lo, Hi: c.Hi}.String(), "L")
}
