package bundle

import (
	"fmt"
	"slices"
	"strings"

	"anelab/coreml"
	"anelab/coreml/interp"
	"anelab/coreml/mil"
	"anelab/internal/format"
)

// Chunk is one program of a chain.
type Chunk struct {
	Name     string // for messages: its file
	Model    *interp.Model
	Function string // the one that steps call
	// Start gives a sequence an engine other than the interpreter, which is still asked what the ports are; nil is the interpreter.
	Start func() (Engine, error)
	// Files are what [OpenChunk] has opened.
	Files *coreml.Model
}

// OpenChunk opens a package or a compiled model as a chunk.
func OpenChunk(path string, o interp.Options) (*Chunk, error) {
	o.Path = path
	files, err := coreml.Open(path)
	if err != nil {
		return nil, err
	}
	c := &Chunk{Name: path, Files: files}
	f := files.Decode()
	switch c.Model, err = interp.New(files.Program, o); {
	case err != nil:
	case f == nil || coreml.Tokens(f) != 1:
		err = &format.Error{Path: path, Field: "functions", Got: strings.Join(files.FunctionNames(), ", "), Want: "one that takes a token, such as " + mil.MainFunction,
			Fix: "a chunk needs a function that takes one token; files of prefill functions go with others"}
	default:
		c.Function = f.Name
		return c, nil
	}
	files.Close()
	return nil, err
}

// Close releases the weights.
func (c *Chunk) Close() error {
	if c.Files == nil {
		return nil
	}
	return c.Files.Close()
}

// function is one of the chunk's, the one of steps if name is empty; nil if there is none of that name.
func (c *Chunk) function(name string) *mil.Function {
	if name == "" {
		name = c.Function
	}
	return c.Model.Program.Function(name)
}

// gives reports whether the chunk has an output of that name.
func (c *Chunk) gives(output string) bool {
	return slices.Contains(c.function("").Body.Outputs, output)
}

// checkWidths refuses a chunk that was made for tables of other widths.
func (c *Chunk) checkWidths(config *Config) error {
	for port, width := range map[string]int{"hidden_states": config.HiddenSize, "per_layer_raw": config.PerLayerDim * config.NumHiddenLayers,
		"cos_s": config.HeadDim, "sin_s": config.HeadDim, "cos_f": config.GlobalHeadDim, "sin_f": config.GlobalHeadDim} {
		in := c.function("").Input(port)
		if in == nil || len(in.Type.Shape) == 0 {
			continue
		}
		if got := in.Type.Shape[len(in.Type.Shape)-1]; got != int64(width) {
			return &format.Error{Path: c.Name, Field: port, Got: fmt.Sprintf("rows of %d", got), Want: fmt.Sprintf("%d, as the tables have", width),
				Fix: "chunks and tables of two models were mixed in one folder"}
		}
	}
	return nil
}
