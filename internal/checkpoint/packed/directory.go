package packed

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"

	"anelab/internal/format"
	"anelab/internal/kernel"
	"anelab/quant"
)

const (
	magic       = "ANELABP1"
	endMagic    = "ANELABPE"
	trailerSize = 32
	alignment   = 64
	// maxDirectory bounds what a trailer may ask to be parsed.
	maxDirectory = 64 << 20
)

// Versions: a file asks for no more than its reader must know.
const (
	versionPlain  = 1
	versionChosen = 2 // has choices
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// directory is the JSON at the end of a file.
type directory struct {
	Config  json.RawMessage `json:"config"` // config.json, word for word
	Tensors []entry         `json:"tensors"`
	// Choices of a converter, by name (see choices.go).
	Choices map[string]string `json:"choices,omitempty"`
}

// version is what a reader of the directory must know.
func (d *directory) version() uint32 {
	if len(d.Choices) > 0 {
		return versionChosen
	}
	return versionPlain
}

// entry is one tensor.
type entry struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"` // palette4, linear8 or dense
	DType string `json:"dtype,omitempty"`
	Shape []int  `json:"shape"`
	Group int    `json:"group,omitempty"` // palette4: rows per palette, 0 = one palette
	Main  extent `json:"main"`
	Aux   extent `json:"aux"` // tables of a palette, scales of a linear8
}

// extent is a part of the file.
type extent struct {
	Offset int64  `json:"offset"`
	Size   int64  `json:"size"`
	CRC32C uint32 `json:"crc32c"`
}

// Kinds of tensors.
const (
	kindPalette4 = "palette4"
	kindLinear8  = "linear8"
	kindDense    = "dense"
)

// sizes are the bytes that an entry of its kind and shape has.
func (e *entry) sizes() (main, aux int64, err error) {
	for _, d := range e.Shape {
		if d < 1 || d > 1<<28 {
			return 0, 0, fmt.Errorf("shape %v", e.Shape)
		}
	}
	switch {
	case e.Kind == kindDense && len(e.Shape) > 0 && len(e.Shape) <= 2:
		dt, ok := dtypeOf(e.DType)
		if !ok {
			return 0, 0, fmt.Errorf("dtype %q, want f32, f16 or bf16", e.DType)
		}
		n := int64(dt.Size())
		for _, d := range e.Shape {
			n *= int64(d)
		}
		return n, 0, nil
	case e.Kind == kindPalette4 && len(e.Shape) == 2:
		m := kernel.Palette4{Rows: e.Shape[0], Cols: e.Shape[1]}
		return int64(m.Groups()) * int64(m.Stride()), int64(m.Groups()) * 32, nil
	case e.Kind == kindLinear8 && len(e.Shape) == 2:
		return int64(e.Shape[0]) * int64(e.Shape[1]), 4 * int64(e.Shape[0]), nil
	}
	return 0, 0, fmt.Errorf("kind %q with shape %v", e.Kind, e.Shape)
}

func dtypeOf(name string) (quant.DType, bool) {
	for _, d := range []quant.DType{quant.F32, quant.F16, quant.BF16} {
		if d.String() == name {
			return d, true
		}
	}
	return 0, false
}

// parse reads trailer and directory and checks that every tensor lies inside the data, apart from the others.
func parse(path string, data []byte) (*directory, error) {
	fail := func(field, got, want, fix string) error {
		return &format.Error{Path: path, Field: field, Got: got, Want: want, Fix: fix}
	}
	if len(data) < len(magic)+trailerSize || string(data[:len(magic)]) != magic {
		return nil, fail("", "not a packed model", "a file that simulate pack wrote", "")
	}
	t := data[len(data)-trailerSize:]
	if string(t[24:]) != endMagic {
		return nil, fail("trailer", "no end mark", "a complete file", "the file is truncated: pack the checkpoint again")
	}
	offset, length := binary.LittleEndian.Uint64(t), binary.LittleEndian.Uint64(t[8:])
	version := binary.LittleEndian.Uint32(t[20:])
	if version != versionPlain && version != versionChosen {
		return nil, fail("version", fmt.Sprint(version), fmt.Sprintf("%d or %d", versionPlain, versionChosen), "pack the checkpoint again with this build")
	}
	end := uint64(len(data) - trailerSize)
	if length > maxDirectory || offset > end || length != end-offset {
		return nil, fail("directory", fmt.Sprintf("%d bytes at %d", length, offset), fmt.Sprintf("the bytes before the trailer at %d", end), "the file is damaged: pack the checkpoint again")
	}
	text := data[offset:end]
	if sum := crc32.Checksum(text, castagnoli); sum != binary.LittleEndian.Uint32(t[16:]) {
		return nil, fail("directory", fmt.Sprintf("checksum %08x", sum), fmt.Sprintf("%08x", binary.LittleEndian.Uint32(t[16:])), "the file is damaged: pack the checkpoint again")
	}
	d := &directory{}
	if err := json.Unmarshal(text, d); err != nil {
		return nil, &format.Error{Path: path, Field: "directory", Err: err}
	}
	if d.version() != version {
		return nil, fail("choices", fmt.Sprintf("%d of them in a file of version %d", len(d.Choices), version), "choices in version 2 alone", "the file is damaged: pack the checkpoint again")
	}
	return d, d.check(path, int64(offset))
}

// check holds every entry against its shape and against the others.
func (d *directory) check(path string, end int64) error {
	var all []extent
	seen := map[string]bool{}
	for i := range d.Tensors {
		e := &d.Tensors[i]
		main, aux, err := e.sizes()
		if err == nil && (e.Main.Size != main || e.Aux.Size != aux) {
			err = fmt.Errorf("%d and %d bytes, want %d and %d", e.Main.Size, e.Aux.Size, main, aux)
		}
		if err == nil && seen[e.Name] {
			err = fmt.Errorf("the name occurs twice")
		}
		if err != nil {
			return &format.Error{Path: path, Field: e.Name, Err: err, Fix: "the file is damaged: pack the checkpoint again"}
		}
		seen[e.Name] = true
		all = append(all, e.Main, e.Aux)
	}
	slices.SortFunc(all, func(a, b extent) int { return int(min(max(a.Offset-b.Offset, -1), 1)) })
	at := int64(len(magic))
	for _, x := range all {
		if x.Size == 0 {
			continue
		}
		if x.Offset < at || x.Offset > end || x.Size > end-x.Offset {
			return &format.Error{Path: path, Field: "directory", Got: fmt.Sprintf("a tensor at %d of %d bytes", x.Offset, x.Size),
				Want: fmt.Sprintf("from %d, inside %d", at, end), Fix: "the file is damaged: pack the checkpoint again"}
		}
		at = x.Offset + x.Size
	}
	return nil
}
