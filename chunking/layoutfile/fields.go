package layoutfile

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/goccy/go-yaml/ast"

	"anelab/chunking"
	"anelab/internal/format"
	"anelab/quant"
)

// field is one key of a mapping and what reads its value.
type field struct {
	name string
	read func(ast.Node) error
}

// mapping reads a mapping strictly: every key must be a field, once.
func (r *reader) mapping(n ast.Node, what string, fields []field) error {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return r.fault(n, format.Error{Got: kindOf(n), Want: what})
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	given := map[string]bool{}
	for _, pair := range m.Values {
		name := pair.Key.GetToken().Value
		i := indexOf(names, name)
		switch {
		case i < 0:
			return r.fault(pair, format.Error{Got: "unknown field " + strconv.Quote(name), Fix: format.DidYouMean(name, names)})
		case given[name]:
			return r.fault(pair, format.Error{Got: name + " is given twice", Fix: "keep one"})
		}
		given[name] = true
		if err := fields[i].read(pair.Value); err != nil {
			return r.place(pair.Value, err)
		}
	}
	return nil
}

func indexOf(names []string, name string) int {
	for i, n := range names {
		if n == name {
			return i
		}
	}
	return -1
}

// place gives an error of a value reader the place of the value, if it has none yet.
func (r *reader) place(n ast.Node, err error) error {
	var placed *Error
	if errors.As(err, &placed) {
		return err
	}
	var f *format.Error
	if errors.As(err, &f) {
		return r.fault(n, *f)
	}
	return r.fault(n, format.Error{Err: err})
}

// document reads the fields of the whole layout.
func (r *reader) document(root ast.Node) error {
	var chunks, preset ast.Node
	var weights quant.Encoding
	err := r.mapping(root, "fields of a layout, such as chunks or preset", []field{
		{"chunks", func(n ast.Node) error { chunks = n; return r.chunks(n) }},
		{"preset", func(n ast.Node) error { preset = n; return nil }},
		{"weights", into(quant.ParseEncoding, &weights)},
		{"kv", r.kv},
		{"attn", r.attention},
		{"context", r.size(chunking.RuleContext, &r.out.Context)},
		{"tokens", r.size(chunking.RuleTokens, &r.out.QueryTokens)},
	})
	switch {
	case err != nil:
		return err
	case chunks != nil && preset != nil:
		return r.fault(preset, format.Error{Got: "preset together with chunks", Want: "one of the two"})
	case preset != nil:
		if err := r.preset(preset); err != nil {
			return err
		}
	}
	for i := range r.out.Cuts {
		if r.out.Cuts[i].Weights == (quant.Encoding{}) {
			r.out.Cuts[i].Weights = weights
		}
	}
	return nil
}

func (r *reader) preset(n ast.Node) error {
	name, err := text(n)
	if err != nil {
		return r.place(n, err)
	}
	l, ok := r.model.Preset(name)
	if !ok {
		var names []string
		for _, p := range chunking.Presets() {
			names = append(names, p.Name)
		}
		return r.fault(n, format.Error{Got: "unknown preset " + strconv.Quote(name), Fix: format.DidYouMean(name, names)})
	}
	r.out.Cuts = l.Cuts
	for range l.Cuts {
		r.cuts = append(r.cuts, n)
	}
	return nil
}

func (r *reader) chunks(n ast.Node) error {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		return r.fault(n, format.Error{Got: kindOf(n), Want: "a list of chunks"})
	}
	for _, item := range list.Values {
		if err := r.chunk(item); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) chunk(n ast.Node) error {
	var head bool
	var layers ast.Node
	cut := chunking.Cut{Lo: len(r.model.Layers), Hi: len(r.model.Layers)} // without layers it can only be the head
	err := r.mapping(n, "a chunk: layers, head, weights", []field{
		{"layers", func(v ast.Node) error { layers = v; return r.layers(v, &cut) }},
		{"head", into(strconv.ParseBool, &head)},
		{"weights", into(quant.ParseEncoding, &cut.Weights)},
		{"kv", r.kv},
	})
	if err != nil {
		return err
	}
	cut.Head = cut.Head || head
	if layers == nil {
		layers = n
	}
	r.out.Cuts, r.cuts = append(r.out.Cuts, cut), append(r.cuts, layers)
	return nil
}

// layers reads a range, a number, or a list of consecutive numbers. The weights may have been read before.
func (r *reader) layers(n ast.Node, cut *chunking.Cut) error {
	if list, ok := n.(*ast.SequenceNode); ok {
		return r.layerList(list, cut)
	}
	s, err := text(n)
	if err != nil {
		return err
	}
	c, err := chunking.ParseCut(s, r.model)
	cut.Lo, cut.Hi, cut.Head = c.Lo, c.Hi, c.Head
	return err
}

func (r *reader) layerList(list *ast.SequenceNode, cut *chunking.Cut) error {
	if len(list.Values) == 0 {
		return r.fault(list, format.Error{Got: "no layers", Want: "at least one"})
	}
	for i, v := range list.Values {
		layer, err := number(v)
		if err != nil {
			return r.place(v, err)
		}
		if i == 0 {
			cut.Lo, cut.Hi = layer, layer
		}
		if layer != cut.Hi {
			return r.fault(v, format.Error{Got: fmt.Sprintf("layer %d after layer %d", layer, cut.Hi-1), Want: "consecutive layers",
				Fix: fmt.Sprintf("a chunk runs its layers in order; %d comes next", cut.Hi)})
		}
		cut.Hi++
	}
	return nil
}

func (r *reader) kv(n ast.Node) error {
	r.settings[setting{chunking.RuleKVMode, -1}] = n
	return into(chunking.ParseKVMode, &r.out.KVMode)(n)
}

// attention reads one policy for all full layers, or a list of policies.
func (r *reader) attention(n ast.Node) error {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		return r.policy(n, -1, n)
	}
	for _, item := range list.Values {
		layer, policy := -1, ast.Node(nil)
		err := r.mapping(item, "layer and policy", []field{
			{"layer", func(v ast.Node) (err error) { layer, err = r.layerNumber(v); return err }},
			{"policy", func(v ast.Node) error { policy = v; return nil }},
		})
		switch {
		case err != nil:
			return err
		case policy == nil:
			return r.fault(item, format.Error{Got: "no policy", Want: "layer and policy"})
		}
		if err := r.policy(policy, layer, item); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) policy(n ast.Node, layer int, item ast.Node) error {
	s, err := text(n)
	if err == nil {
		err = chunking.CheckPolicy(s)
	}
	if err != nil {
		return r.place(n, err)
	}
	r.settings[setting{chunking.RuleAttn, layer}] = item
	r.out.Attn = append(r.out.Attn, chunking.LayerAttn{Layer: layer, Policy: s})
	return nil
}

// size reads a number that must be at least 1; how large it may be is for the model's rules to say.
func (r *reader) size(rule chunking.Rule, dst *int) func(ast.Node) error {
	return func(n ast.Node) error {
		r.settings[setting{rule, -1}] = n
		v, err := number(n)
		if err == nil && v < 1 {
			err = &format.Error{Got: strconv.Itoa(v), Want: "at least 1"}
		}
		*dst = v
		return err
	}
}

// layerNumber reads the layer of a policy. −1 has a meaning in a layout that nobody should have to know.
func (r *reader) layerNumber(n ast.Node) (int, error) {
	layer, err := number(n)
	if err == nil && layer < 0 {
		err = &format.Error{Got: strconv.Itoa(layer), Want: "a layer", Fix: "leave layer out to mean all full layers"}
	}
	return layer, err
}
