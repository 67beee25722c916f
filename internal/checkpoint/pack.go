package checkpoint

import (
	"context"
	"encoding/binary"
	"strconv"

	"anelab/gemma4"
	"anelab/internal/checkpoint/packed"
	"anelab/internal/format"
	"anelab/internal/half"
	"anelab/quant"
)

// PackOptions say how a checkpoint is packed.
type PackOptions struct {
	Config    gemma4.Config
	Mode      quant.Mode // how palettes are made
	HeadBits  int        // of the LM head: 4, 8 or 16
	TableBits int        // of the tables that are looked up by row: 8 or 16
	Choices   packed.Choices
}

// paletteMin is the size below which converters leave a weight alone (spec forward.md §4.0).
const paletteMin = 2048

// PackSource is a model that can be packed: a [Checkpoint], or the weights of converted packages. Names lists its tensors in the names
// of gemma4.Source.
type PackSource interface {
	gemma4.MatrixSource
	Names() []string
	Describe(name string) (quant.Tensor, error)
}

// Pack writes a model of that configuration as a packed model: linears as 4-bit palettes of 32 rows, gains as they are, the tables and the
// head as asked. What is compressed already keeps its numbers: as a palette where the kernels have a form for it, else as fp16.
// progress, which may be nil, is called after every tensor.
func Pack(ctx context.Context, c PackSource, path string, o PackOptions, progress func(done, total int)) error {
	if o.HeadBits != 4 && o.HeadBits != 8 && o.HeadBits != 16 || o.TableBits != 8 && o.TableBits != 16 {
		return &format.Error{Field: "bits", Got: strconv.Itoa(o.HeadBits) + " for the head, " + strconv.Itoa(o.TableBits) + " for the tables",
			Want: "4, 8 or 16 and 8 or 16"}
	}
	config, err := o.Config.Text()
	if err != nil {
		return err
	}
	w, err := packed.Create(path, config)
	if err != nil {
		return err
	}
	w.Choose(o.Choices)
	p := packing{ctx: ctx, c: c, w: w, o: o}
	for i, name := range c.Names() {
		if err := p.tensor(name); err != nil {
			w.Abort()
			return err
		}
		if progress != nil {
			progress(i+1, len(c.Names()))
		}
	}
	return w.Commit()
}

type packing struct {
	ctx context.Context
	c   PackSource
	w   *packed.Writer
	o   PackOptions
}

func (p *packing) tensor(name string) error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	d, err := p.c.Describe(name)
	if err != nil {
		return err
	}
	switch {
	case name == "embed_tokens.weight":
		return p.embedding(name)
	case name == "embed_tokens_per_layer.weight":
		return p.table(name)
	case len(d.Shape) == 2 && d.Len() > paletteMin && d.Shape[0]%32 == 0:
		return p.palette(name, name)
	}
	return p.dense(name)
}

// embedding writes the table for lookups and, where the head has numbers of its own or fewer bits, the head beside it.
func (p *packing) embedding(name string) error {
	if err := p.table(name); err != nil {
		return err
	}
	head, err := p.c.Head()
	switch {
	case err != nil:
		return err
	case head != nil:
		return p.matrix(packed.Head, head)
	case p.o.HeadBits == p.o.TableBits:
		return nil
	case p.o.HeadBits == 4:
		return p.palette(packed.Head, name)
	case p.o.HeadBits == 8:
		m, err := p.c.Matrix(name)
		if err != nil {
			return err
		}
		return p.w.Rows8(packed.Head, m)
	}
	t, err := p.c.Tensor(name)
	if err != nil {
		return err
	}
	t.Name = packed.Head
	return p.w.Dense(t)
}

func (p *packing) table(name string) error {
	if p.o.TableBits == 16 {
		return p.dense(name)
	}
	m, err := p.c.Matrix(name)
	if err != nil {
		return err
	}
	return p.w.Rows8(name, m)
}

func (p *packing) dense(name string) error {
	t, err := p.c.Tensor(name)
	if err != nil {
		return err
	}
	return p.w.Dense(t)
}

// palette writes a weight as a palette under a name of its own.
func (p *packing) palette(as, name string) error {
	m, err := p.c.Matrix(name)
	if err != nil {
		return err
	}
	if m.Encoding().Bits < 16 {
		return p.matrix(as, m)
	}
	made, err := quant.Palettize(p.ctx, quant.AsF16(m), quant.Options{Mode: p.o.Mode, Bits: 4, Group: 32}, nil)
	if err != nil {
		return &format.Error{Path: p.c.Path(), Field: name, Err: err}
	}
	return p.matrix(as, made)
}

// matrix writes a matrix with the numbers that it has: as a palette where the kernels have a form for it, else as fp16.
func (p *packing) matrix(as string, m quant.Matrix) error {
	switch stored := m.(type) {
	case *quant.Packed:
		return p.w.Palette(as, stored)
	case *quant.Palette:
		if k, ok := quant.Pack4(stored); ok {
			return p.w.Palette(as, k)
		}
	}
	return p.w.Dense(decoded(as, m))
}

// decoded is a matrix as the numbers that it reads as, which are fp16.
func decoded(name string, m quant.Matrix) quant.Tensor {
	t := quant.Tensor{Name: name, DType: quant.F16, Shape: []int{m.Rows(), m.Cols()}}
	row := make([]float32, m.Cols())
	for r := range m.Rows() {
		m.Row(row, r)
		for _, v := range row {
			t.Data = binary.LittleEndian.AppendUint16(t.Data, half.F32ToF16(v))
		}
	}
	return t
}

// Head is the LM head where it is stored apart from the embedding table; nil where the table serves.
func (c *Checkpoint) Head() (quant.Matrix, error) {
	if f, ok := c.store.(*packed.File); ok && f.HasHead() {
		return f.Matrix(packed.Head)
	}
	return nil, nil
}

var (
	_ gemma4.MatrixSource = (*Checkpoint)(nil)
	_ gemma4.ScaledSource = (*Checkpoint)(nil)
)
