package golden

import (
	"fmt"
	"strconv"
	"strings"

	"anelab/quant"
)

// Kind is what a file holds.
type Kind uint8

// The three kinds of files.
const (
	Passes Kind = iota
	Decode
	Formula
)

var kindNames = [...]string{"passes", "decode", "formula"}

func (k Kind) String() string { return kindNames[k] }

// suffix is what follows the tensor in a name.
type suffix uint8

const (
	noSuffix suffix = iota
	layerSuffix
	typeSuffix // "sliding" or "full"
)

// tensorSpec is one tensor of a kind of file. Letters of axes stand for the same size everywhere in a case (T) or a file (the
// rest); _ is any size and a digit is itself.
type tensorSpec struct {
	suffix  suffix
	axes    string
	indices bool // I64 rather than floating point
}

// passTensors are the tensors of one case of a Passes file.
var passTensors = map[string]tensorSpec{
	"input_ids":        {axes: "T", indices: true},
	"embeds":           {axes: "T D"},
	"per_layer_inputs": {axes: "T L P"},
	"hidden":           {suffix: layerSuffix, axes: "T D"},
	"final_norm":       {axes: "T D"},
	"logits_pre":       {axes: "T V"},
	"logits":           {axes: "T V"},
	"q":                {suffix: layerSuffix, axes: "T H _"},
	"k":                {suffix: layerSuffix, axes: "T _ _"},
	"v":                {suffix: layerSuffix, axes: "T _ _"},
	"probs":            {suffix: layerSuffix, axes: "H T T"},
	"attn_out":         {suffix: layerSuffix, axes: "T D"},
	"router_index":     {suffix: layerSuffix, axes: "T _", indices: true},
	"router_weight":    {suffix: layerSuffix, axes: "T _"},
	"rope_cos":         {suffix: typeSuffix, axes: "T _"},
	"rope_sin":         {suffix: typeSuffix, axes: "T _"},
}

// fileTensors are the tensors outside cases, by kind.
var fileTensors = [...]map[string]tensorSpec{
	Passes: {
		"rope_inv_freq": {suffix: typeSuffix, axes: "_"},
	},
	Decode: {
		"prompt_ids": {axes: "T", indices: true},
		"tokens":     {axes: "N", indices: true},
		"logits":     {axes: "N V"},
		"k":          {suffix: layerSuffix, axes: "R _ _"}, // R = T + N − 1: the last token is not fed
		"v":          {suffix: layerSuffix, axes: "R _ _"},
		"hf_cache_k": {suffix: layerSuffix, axes: "_ _ _"},
		"hf_cache_v": {suffix: layerSuffix, axes: "_ _ _"},
	},
	Formula: {
		"input_ids":       {axes: "T", indices: true},
		"tokens":          {axes: "N", indices: true},
		"logits":          {axes: "N V"},
		"embeds_last2":    {axes: "2 D"},
		"hidden_last2":    {axes: "L 2 D"},
		"hidden_rms":      {axes: "L T"},
		"final_norm_last": {axes: "D"},
		"cache_k_last":    {suffix: layerSuffix, axes: "1 _"},
		"cache_v_last":    {suffix: layerSuffix, axes: "1 _"},
		"rope_inv_freq":   {suffix: typeSuffix, axes: "_"},
	},
}

// required tensors of a case, by kind: the prompt, and what it leads to.
var required = [...][]string{
	Passes:  {"input_ids", "logits"},
	Decode:  {"prompt_ids", "tokens", "logits"},
	Formula: {"input_ids", "tokens", "logits", "hidden_last2"},
}

// parsed is a name taken apart.
type parsed struct {
	caseName string // "" outside cases
	key      string // the name without its case
	spec     tensorSpec
}

// parseName takes apart the name of a tensor in a file of kind k.
func parseName(k Kind, name string) (parsed, error) {
	p := parsed{key: name}
	specs := fileTensors[k]
	if first, rest, ok := strings.Cut(name, "."); ok && k == Passes && isCase(first) {
		p.caseName, p.key, specs = first, rest, passTensors
	}
	tensor, tail, dotted := strings.Cut(p.key, ".")
	spec, ok := specs[tensor]
	if !ok {
		return p, fmt.Errorf("unknown tensor %q", tensor)
	}
	p.spec = spec
	switch {
	case spec.suffix == noSuffix && !dotted,
		spec.suffix == layerSuffix && isNumber(tail),
		spec.suffix == typeSuffix && (tail == "sliding" || tail == "full"):
		return p, nil
	}
	return p, fmt.Errorf("%q with suffix %q", tensor, tail)
}

// isCase reports whether s is T and a length, as the cases are named.
func isCase(s string) bool { return len(s) > 1 && s[0] == 'T' && s != "T0" && isNumber(s[1:]) }

// isNumber reports whether s is a small number as it is printed, so that no two names mean one layer.
func isNumber(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && strconv.FormatUint(n, 10) == s
}

// sizes remembers what the letters of axes stand for.
type sizes map[string]int

// check compares the shape and type of t with its spec and learns letters on the way. prefix separates the T of cases.
func (s sizes) check(prefix string, t quant.Tensor, spec tensorSpec) error {
	want := "a floating-point type"
	if spec.indices {
		want = "i64"
	}
	if spec.indices != (t.DType == quant.I64) || !spec.indices && !t.DType.Float() {
		return fmt.Errorf("%s, want %s", t.DType, want)
	}
	axes := strings.Fields(spec.axes)
	if len(t.Shape) != len(axes) {
		return fmt.Errorf("shape %v, want [%s]", t.Shape, spec.axes)
	}
	for i, letter := range axes {
		if letter == "_" && t.Shape[i] > 0 {
			continue
		}
		if size, ok := s.size(prefix, letter, t.Shape[i]); !ok {
			return fmt.Errorf("shape %v, want [%s] with %s = %d", t.Shape, spec.axes, letter, size)
		}
	}
	return nil
}

// size returns what letter stands for and whether got is that; an unknown letter becomes got.
func (s sizes) size(prefix, letter string, got int) (int, bool) {
	if n, err := strconv.Atoi(letter); err == nil {
		return n, n == got
	}
	if letter == "T" {
		letter = prefix + letter
	}
	if s[letter] == 0 {
		s[letter] = got
	}
	return s[letter], got == s[letter] && got > 0
}
