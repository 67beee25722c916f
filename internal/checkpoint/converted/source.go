package converted

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"anelab/coreml"
	"anelab/coreml/mil"
	"anelab/gemma4"
	"anelab/internal/format"
	"anelab/quant"
)

// Source is the weights of a chain of packages under the names of a checkpoint. It is a [gemma4.MatrixSource].
type Source struct {
	Config  gemma4.Config
	Chunks  []Chunk // in layer order
	Choices Choices

	tables  gemma4.Source
	weights map[string]weight
	ones    map[string]bool // layer scalars that were dropped as factors of one
	owned   []*coreml.Model
}

// Chunk is one package of the chain.
type Chunk struct {
	*coreml.Model
	Function *mil.Function // the one that the weights were read from
	Lo, Hi   int           // layers [Lo, Hi)

	graph *graph
	found found
}

// Name is the file name without its ending.
func (c Chunk) Name() string {
	base := filepath.Base(c.Path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// Open opens the packages of one chain, in any order, and finds their weights. tables holds embed_tokens.weight and
// embed_tokens_per_layer.weight; it may be nil.
func Open(config gemma4.Config, tables gemma4.Source, paths ...string) (*Source, error) {
	var programs []*coreml.Model
	fail := func(err error) (*Source, error) {
		for _, p := range programs {
			p.Close()
		}
		return nil, err
	}
	for _, path := range paths {
		p, err := coreml.Open(path)
		if err != nil {
			return fail(err)
		}
		programs = append(programs, p)
	}
	s, err := New(config, tables, programs...)
	if err != nil {
		return fail(err)
	}
	s.owned = programs
	return s, nil
}

// New is [Open] for programs that are open already and stay so.
func New(config gemma4.Config, tables gemma4.Source, programs ...*coreml.Model) (*Source, error) {
	s := &Source{Config: config, tables: tables, weights: map[string]weight{}, ones: map[string]bool{}}
	if len(programs) == 0 {
		return nil, &format.Error{Field: "packages", Got: "none", Want: "the chunks of a model"}
	}
	if err := coreml.CheckContexts(0, "", programs...); err != nil {
		return nil, err
	}
	for _, p := range inOrder(programs) {
		if err := s.add(p); err != nil {
			return nil, err
		}
	}
	if n := s.Chunks[len(s.Chunks)-1].Hi; n != config.NumHiddenLayers {
		return nil, s.wrongLayers(n)
	}
	return s, nil
}

// inOrder sorts chunks: the one that combines per-layer inputs first, the head last, others by name, numbers as numbers.
func inOrder(programs []*coreml.Model) []*coreml.Model {
	list := slices.Clone(programs)
	rank := func(p *coreml.Model) int {
		f := p.Decode()
		switch {
		case f == nil:
			return 0
		case f.Input("per_layer_raw") != nil:
			return -1
		case slices.Contains(f.Body.Outputs, "token_id"), slices.Contains(f.Body.Outputs, "token_ids"):
			return 1
		}
		return 0
	}
	slices.SortStableFunc(list, func(a, b *coreml.Model) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(padded(a.Path), padded(b.Path)))
	})
	return list
}

// padded makes numbers of a name sort by value.
func padded(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); {
		n := i
		for n < len(name) && '0' <= name[n] && name[n] <= '9' {
			n++
		}
		if n == i {
			b.WriteByte(name[i])
			i++
			continue
		}
		b.WriteString(strings.Repeat("0", max(0, 12-(n-i))) + name[i:n])
		i = n
	}
	return b.String()
}

// add finds the weights of the next chunk.
func (s *Source) add(p *coreml.Model) error {
	f := p.Decode()
	if f == nil || f.Body == nil {
		return &format.Error{Path: p.Path, Field: "functions", Got: "none", Want: "a chunk"}
	}
	g := newGraph(f)
	w, err := g.find(p.Path)
	if err != nil {
		return err
	}
	lo := 0
	if n := len(s.Chunks); n > 0 {
		lo = s.Chunks[n-1].Hi
	}
	c := Chunk{Model: p, Function: f, Lo: lo, Hi: lo + len(w.labels), graph: g, found: w}
	s.Chunks = append(s.Chunks, c)
	s.Choices = s.Choices.or(g.choices(s.Config))
	for name, op := range w.at {
		if label, part := split(name); label != "" {
			name = inLayer(strconv.Itoa(lo+slices.Index(w.labels, label)), part)
		}
		if op == nil {
			s.ones[name] = true
			continue
		}
		s.weights[name] = weight{op, p, f}
	}
	return nil
}

func (s *Source) wrongLayers(n int) error {
	var parts []string
	for _, c := range s.Chunks {
		parts = append(parts, fmt.Sprintf("%s %d", c.Name(), c.Hi-c.Lo))
	}
	return &format.Error{Path: s.Path(), Field: "num_hidden_layers", Got: fmt.Sprintf("%d layers in %s (%s)", n, plural(len(s.Chunks)), strings.Join(parts, ", ")),
		Want: strconv.Itoa(s.Config.NumHiddenLayers), Fix: "give every chunk of one layout, once"}
}

func plural(n int) string {
	if n == 1 {
		return "1 package"
	}
	return strconv.Itoa(n) + " packages"
}

// Path names the folder of the packages in errors.
func (s *Source) Path() string { return filepath.Dir(s.Chunks[0].Path) }

// The tables that hosts look tokens up in, and what packages call the head that the first is tied to.
const (
	embedding     = "embed_tokens.weight"
	layerTable    = "embed_tokens_per_layer.weight"
	missingTable  = "no table"
	tablesAdvice  = "packages hold none: give the checkpoint, or the bundle folder with %s"
	embeddingFile = "embed_tokens_q8.bin"
	layerFile     = "embed_tokens_per_layer_q8.bin"
)

// Has implements gemma4.Source.
func (s *Source) Has(name string) bool {
	_, err := s.Describe(name)
	return err == nil
}

// Names lists what the source can give, sorted.
func (s *Source) Names() []string {
	names := append(slices.Collect(maps.Keys(s.weights)), slices.Collect(maps.Keys(s.ones))...)
	for _, table := range []string{embedding, layerTable} {
		if s.Has(table) {
			names = append(names, table)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool { return name == headName })
}

// Describe is the type and shape of a tensor, without bytes. Palettes are described as the fp16 that they read as.
func (s *Source) Describe(name string) (quant.Tensor, error) {
	if w, ok := s.weights[name]; ok {
		return quant.Tensor{Name: name, DType: denseTypes[w.op.Outputs[0].Type.DType], Shape: w.dims()}, nil
	}
	if s.ones[name] {
		return quant.Tensor{Name: name, DType: quant.F16, Shape: []int{1}}, nil
	}
	from, err := s.table(name)
	switch {
	case err != nil:
		return quant.Tensor{}, err
	case from == nil:
		t, err := s.Describe(headName)
		t.Name = name
		return t, err
	}
	if d, ok := from.(interface {
		Describe(name string) (quant.Tensor, error)
	}); ok {
		return d.Describe(name)
	}
	t, err := from.Tensor(name)
	t.Data = nil
	return t, err
}

// table is the source of an embedding table; nil for the head, which serves as one.
func (s *Source) table(name string) (gemma4.Source, error) {
	file := map[string]string{embedding: embeddingFile, layerTable: layerFile}[name]
	_, head := s.weights[headName]
	switch {
	case file == "":
		return nil, s.noTensor(name, "")
	case s.tables != nil && s.tables.Has(name):
		return s.tables, nil
	case name == embedding && head:
		return nil, nil
	}
	return nil, s.noTensor(name, fmt.Sprintf(tablesAdvice, file))
}

func (s *Source) noTensor(name, fix string) error {
	got := "no such weight in " + plural(len(s.Chunks))
	if fix != "" {
		got = missingTable
	}
	return &format.Error{Path: s.Path(), Field: name, Got: got, Fix: fix}
}

// Tensor returns a tensor as dense numbers; compressed weights are decoded.
func (s *Source) Tensor(name string) (quant.Tensor, error) {
	var t quant.Tensor
	var err error
	switch w, ok := s.weights[name]; {
	case ok:
		t, err = w.tensor()
	case s.ones[name]:
		t = quant.Tensor{DType: quant.F16, Shape: []int{1}, Data: []byte{0x00, 0x3C}}
	default:
		return s.tableTensor(name)
	}
	t.Name = name
	return t, s.located(name, err)
}

func (s *Source) tableTensor(name string) (quant.Tensor, error) {
	from, err := s.table(name)
	switch {
	case err != nil:
		return quant.Tensor{}, err
	case from == nil:
		return s.Tensor(headName)
	}
	return from.Tensor(name)
}

// Matrix implements gemma4.MatrixSource: palettes stay palettes.
func (s *Source) Matrix(name string) (quant.Matrix, error) {
	if w, ok := s.weights[name]; ok {
		m, err := w.matrix()
		return m, s.located(name, err)
	}
	from, err := s.table(name)
	switch {
	case err != nil:
		return nil, err
	case from == nil:
		return s.Matrix(headName)
	}
	if m, ok := from.(gemma4.MatrixSource); ok {
		return m.Matrix(name)
	}
	t, err := from.Tensor(name)
	if err != nil {
		return nil, err
	}
	m, err := quant.Dense(t)
	return m, s.located(name, err)
}

// Head implements gemma4.MatrixSource: the packages' own head, whatever the table is.
func (s *Source) Head() (quant.Matrix, error) { return s.Matrix(headName) }

// located adds the package to an error that has no place.
func (s *Source) located(name string, err error) error {
	var known *format.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	path := s.Path()
	if w, ok := s.weights[name]; ok {
		path = w.p.Path
	}
	return &format.Error{Path: path, Field: name, Err: err}
}

// Close closes the packages that Open opened. Weights must not be used afterwards.
func (s *Source) Close() error {
	var err error
	for _, p := range s.owned {
		err = errors.Join(err, p.Close())
	}
	s.owned = nil
	return err
}

var _ gemma4.MatrixSource = (*Source)(nil)
