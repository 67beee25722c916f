package bundle

import (
	"fmt"
	"io"
	"strings"

	"anelab/coreml/interp"
	"anelab/coreml/mil"
	"anelab/coreml/miltext"
	"anelab/coreml/mlpackage"
	"anelab/internal/format"
)

// Chunk is one program of a chain.
type Chunk struct {
	Name     string // for messages: its file
	Model    *interp.Model
	Function string // the one that takes a token

	files io.Closer
}

// decodeNames are what converters call the function that takes one token (spec forward.md §4.2).
var decodeNames = []string{mil.MainFunction, "decode_q1", "decode"}

// OpenChunk opens a package or a compiled model as a chunk.
func OpenChunk(path string, o interp.Options) (c *Chunk, err error) {
	c, o.Path = &Chunk{Name: path}, path
	program, err := c.read(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.files.Close()
		}
	}()
	if c.Model, err = interp.New(program, o); err != nil {
		return nil, err
	}
	for _, name := range decodeNames {
		if program.Function(name) != nil {
			c.Function = name
			return c, nil
		}
	}
	return nil, &format.Error{Path: path, Field: "functions", Got: strings.Join(functionNames(program), ", "), Want: strings.Join(decodeNames, " or "),
		Fix: "a chunk needs a function that takes one token; files of prefill functions go with others"}
}

func (c *Chunk) read(path string) (*mil.Program, error) {
	if strings.HasSuffix(path, ".mlmodelc") {
		m, err := miltext.Open(path)
		if err != nil {
			return nil, err
		}
		c.files = m
		return m.Program, nil
	}
	p, err := mlpackage.Open(path)
	if err != nil {
		return nil, err
	}
	c.files = p
	return p.Program, nil
}

// Close releases the weights.
func (c *Chunk) Close() error {
	if c.files == nil {
		return nil
	}
	return c.files.Close()
}

func (c *Chunk) function() *mil.Function { return c.Model.Program.Function(c.Function) }

// gives reports whether the chunk has an output of that name.
func (c *Chunk) gives(output string) bool {
	for _, name := range c.function().Body.Outputs {
		if name == output {
			return true
		}
	}
	return false
}

func functionNames(p *mil.Program) []string {
	var names []string
	for _, f := range p.Functions {
		names = append(names, f.Name)
	}
	return names
}

// checkContext refuses a chunk whose masks or caches are of another context than the tables: attention would look at rows that were
// never written, or miss rows that were.
func (c *Chunk) checkContext(context int) error {
	mask := c.function().Input("causal_mask_full")
	if mask == nil {
		return nil
	}
	shape := mask.Type.Shape
	if n := shape[len(shape)-1]; n != int64(context) {
		return &format.Error{Path: c.Name, Field: "causal_mask_full", Got: fmt.Sprintf("%d positions", n), Want: fmt.Sprintf("%d: context_length of %s", context, ConfigName),
			Err: ErrContext, Fix: "chunks of several contexts were mixed in one folder; take all of one"}
	}
	return nil
}
