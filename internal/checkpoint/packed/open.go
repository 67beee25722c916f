package packed

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"os"

	"anelab/internal/checkpoint/mapped"
	"anelab/internal/format"
	"anelab/internal/half"
	"anelab/internal/kernel"
	"anelab/quant"
)

// File is an open packed model.
type File struct {
	file    *mapped.File
	config  []byte
	choices Choices
	entries map[string]*entry
	names   []string
}

// Is reports whether the file at path begins like a packed model.
func Is(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [len(magic)]byte
	n, _ := f.Read(head[:])
	return string(head[:n]) == magic
}

// Open maps a packed model.
func Open(path string) (*File, error) {
	file, err := mapped.Open(path)
	if err != nil {
		return nil, err
	}
	f, err := newFile(file)
	if err != nil {
		file.Close()
	}
	return f, err
}

// Parse reads a packed model from memory; path is for errors.
func Parse(path string, data []byte) (*File, error) {
	return newFile(&mapped.File{Path: path, Data: data})
}

func newFile(file *mapped.File) (*File, error) {
	d, err := parse(file.Path, file.Data)
	if err != nil {
		return nil, err
	}
	chosen, err := parseChoices(d.Choices)
	if err != nil {
		return nil, &format.Error{Path: file.Path, Field: "choices", Err: err, Fix: "pack the packages again with this build"}
	}
	f := &File{file: file, config: d.Config, choices: chosen, entries: map[string]*entry{}}
	for i := range d.Tensors {
		e := &d.Tensors[i]
		f.entries[e.Name] = e
		if e.Name != Head {
			f.names = append(f.names, e.Name)
		}
	}
	return f, nil
}

// Path names the file in errors.
func (f *File) Path() string { return f.file.Path }

// Config is the config.json that the model was packed with.
func (f *File) Config() []byte { return f.config }

// Choices are those of the converter whose packages were packed.
func (f *File) Choices() Choices { return f.choices }

// Head is the name of an LM head that is stored apart from the embedding table, in fewer bits.
const Head = "lm_head (packed)"

// HasHead reports whether the file has one.
func (f *File) HasHead() bool { return f.entries[Head] != nil }

// Names lists the tensors of the text model in the order of the file.
func (f *File) Names() []string { return f.names }

// StoredBytes is the size of a tensor, tables and scales included; zero where there is none of that name.
func (f *File) StoredBytes(name string) int64 {
	e, ok := f.entries[name]
	if !ok {
		return 0
	}
	return e.Main.Size + e.Aux.Size
}

// Close unmaps the file; weights must not be used afterwards.
func (f *File) Close() error { return f.file.Close() }

// entry finds a tensor by name.
func (f *File) entry(name string) (*entry, error) {
	e, ok := f.entries[name]
	if !ok {
		return nil, &format.Error{Path: f.Path(), Field: name, Got: "no such tensor"}
	}
	return e, nil
}

// Describe returns a tensor without its bytes. Palettes and bytes with scales are described as the f16 and f32 they read as.
func (f *File) Describe(name string) (quant.Tensor, error) {
	e, err := f.entry(name)
	if err != nil {
		return quant.Tensor{}, err
	}
	dt, ok := dtypeOf(e.DType)
	if !ok {
		dt = quant.F16
	}
	return quant.Tensor{Name: name, DType: dt, Shape: e.Shape}, nil
}

// Tensor returns a dense tensor.
func (f *File) Tensor(name string) (quant.Tensor, error) {
	e, err := f.entry(name)
	if err != nil {
		return quant.Tensor{}, err
	}
	if e.Kind != kindDense {
		return quant.Tensor{}, &format.Error{Path: f.Path(), Field: name, Got: e.Kind, Want: "a dense tensor", Fix: "ask for it as a matrix"}
	}
	t, _ := f.Describe(name)
	t.Data, err = f.part(e, e.Main)
	return t, err
}

// Matrix returns a weight ready to multiply with, its bytes still in the file.
func (f *File) Matrix(name string) (quant.Matrix, error) {
	e, err := f.entry(name)
	if err != nil {
		return nil, err
	}
	switch e.Kind {
	case kindPalette4:
		return f.palette(e)
	case kindLinear8:
		return f.linear(e)
	}
	t, err := f.Tensor(name)
	if err != nil {
		return nil, err
	}
	return quant.Dense(t)
}

func (f *File) bytes(x extent) []byte {
	return f.file.Data[x.Offset : x.Offset+x.Size : x.Offset+x.Size]
}

// part returns bytes whose checksum holds.
func (f *File) part(e *entry, x extent) ([]byte, error) {
	b := f.bytes(x)
	if sum := crc32.Checksum(b, castagnoli); sum != x.CRC32C {
		return nil, &format.Error{Path: f.Path(), Field: e.Name, Got: fmt.Sprintf("checksum %08x", sum), Want: fmt.Sprintf("%08x", x.CRC32C),
			Fix: "the file is damaged: pack the checkpoint again"}
	}
	return b, nil
}

func (f *File) palette(e *entry) (quant.Matrix, error) {
	main, err := f.part(e, e.Main)
	if err != nil {
		return nil, err
	}
	tables, err := f.part(e, e.Aux)
	if err != nil {
		return nil, err
	}
	k := &kernel.Palette4{Rows: e.Shape[0], Cols: e.Shape[1], Packed: main, LUT: make([]float32, len(tables)/2)}
	for i := range k.LUT {
		k.LUT[i] = half.F16ToF32(binary.LittleEndian.Uint16(tables[2*i:]))
	}
	k.Seal()
	return quant.NewPacked(k, e.Group), nil
}

// linear views a table that is looked up by row; its checksum is left to Verify.
func (f *File) linear(e *entry) (quant.Matrix, error) {
	raw, err := f.part(e, e.Aux)
	if err != nil {
		return nil, err
	}
	scale := make([]float32, len(raw)/4)
	for i := range scale {
		scale[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return quant.NewLinear(e.Shape[0], e.Shape[1], linearSpec, quant.LinearParts{Data: f.bytes(e.Main), Scale: scale})
}

var linearSpec = quant.LinearSpec{Integer: quant.I8, Bits: 8, Granularity: quant.PerRow, Scale: quant.F32}

// Verify reads the whole file and checks every checksum.
func (f *File) Verify(ctx context.Context) error {
	for _, e := range f.entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, x := range []extent{e.Main, e.Aux} {
			if _, err := f.part(e, x); err != nil {
				return err
			}
		}
	}
	return nil
}
