package packed

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"anelab/internal/arith"
)

// Choices are how a converter wrote down what a checkpoint leaves open, for models that were packed from its packages. The zero value
// is a model as published.
type Choices struct {
	Rules      arith.ANERules // where the ane mode rounds; those that a converter decides
	Projection Projection
}

// Projection says what the weight of the per-layer model projection contains.
type Projection uint8

// CoreML-LLM's converter multiplies hidden^−½ into it.
const (
	ProjectionPlain Projection = iota
	ProjectionScaled
)

// choice is one of them in the words of a file. The first value is not written.
type choice struct {
	name   string
	values []string
	of     func(*Choices) *uint8
}

var choices = []choice{
	{"eps", []string{"fp16", "exact"}, func(c *Choices) *uint8 { return (*uint8)(&c.Rules.Eps) }},
	{"value_norm", []string{"layer_norm", "five_steps"}, func(c *Choices) *uint8 { return (*uint8)(&c.Rules.VNorm) }},
	{"soft_cap", []string{"divides", "multiplies"}, func(c *Choices) *uint8 { return (*uint8)(&c.Rules.SoftCap) }},
	{"softmax", []string{"five_ops", "fused"}, func(c *Choices) *uint8 { return (*uint8)(&c.Rules.Softmax) }},
	{"ple_scale", []string{"separate", "folded"}, func(c *Choices) *uint8 { return (*uint8)(&c.Rules.PLEScale) }},
	{"ple_projection", []string{"plain", "scaled"}, func(c *Choices) *uint8 { return (*uint8)(&c.Projection) }},
}

// words are the choices as a file says them; nil for the zero value.
func (c Choices) words() map[string]string {
	var words map[string]string
	for _, k := range choices {
		if v := *k.of(&c); v != 0 {
			if words == nil {
				words = map[string]string{}
			}
			words[k.name] = k.values[v]
		}
	}
	return words
}

// parseChoices refuses what it does not know: a model run without a choice that it was made with would give other numbers.
func parseChoices(words map[string]string) (c Choices, err error) {
	for _, name := range slices.Sorted(maps.Keys(words)) {
		i := slices.IndexFunc(choices, func(k choice) bool { return k.name == name })
		if i < 0 {
			return c, fmt.Errorf("an unknown choice %q", name)
		}
		v := slices.Index(choices[i].values, words[name])
		if v < 0 {
			return c, fmt.Errorf("%s is %q, want %s", name, words[name], strings.Join(choices[i].values, " or "))
		}
		*choices[i].of(&c) = uint8(v)
	}
	return c, nil
}
