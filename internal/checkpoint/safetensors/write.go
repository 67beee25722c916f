package safetensors

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"io"
	"strings"

	"anelab/internal/atomicfile"
	"anelab/internal/format"
	"anelab/quant"
)

// headerAlign is what the padded header rounds up to, so that data starts at an address fit for any element type.
const headerAlign = 8

// Write makes a file of tensors in the given order; metadata may be nil. The file appears under its name only when it is
// complete. Tensors with equal names, or with more or fewer bytes than their shape needs, are a mistake of the caller.
func Write(path string, tensors []quant.Tensor, metadata map[string]string) error {
	head := encodeHeader(tensors, metadata)
	f, err := atomicfile.Create(path)
	if err != nil {
		return &format.Error{Path: path, Err: err}
	}
	if err := writeAll(f, head, tensors); err != nil {
		f.Discard()
		return &format.Error{Path: path, Err: err}
	}
	if err := f.Commit(); err != nil {
		return &format.Error{Path: path, Err: err}
	}
	return nil
}

func writeAll(f io.Writer, head []byte, tensors []quant.Tensor) error {
	w := bufio.NewWriterSize(f, 1<<16)
	w.Write(head) // Flush returns the first error
	for _, t := range tensors {
		w.Write(t.Data)
	}
	return w.Flush()
}

// stored is one tensor of the JSON; the order of fields is that of other writers.
type stored struct {
	DType   string `json:"dtype"`
	Shape   []int  `json:"shape"`
	Offsets [2]int `json:"data_offsets"`
}

// encodeHeader is the file up to its data.
func encodeHeader(tensors []quant.Tensor, metadata map[string]string) []byte {
	names := map[string]bool{metadataKey: true}
	b := make([]byte, lengthSize)
	if metadata != nil {
		b = appendMember(b, metadataKey, metadata)
	}
	at := 0
	for _, t := range tensors {
		if names[t.Name] || len(t.Data) != t.Len()*t.DType.Size() {
			panic("safetensors: Write: want names that differ, and the bytes each shape needs")
		}
		names[t.Name] = true
		b = appendMember(b, t.Name, stored{strings.ToUpper(t.DType.String()), append([]int{}, t.Shape...), [2]int{at, at + len(t.Data)}})
		at += len(t.Data)
	}
	if len(b) == lengthSize {
		b = append(b, '{')
	}
	b = append(b, '}')
	for len(b)%headerAlign != 0 {
		b = append(b, ' ')
	}
	binary.LittleEndian.PutUint64(b, uint64(len(b)-lengthSize))
	return b
}

// appendMember adds one key and value to the object that starts after the length.
func appendMember(b []byte, key string, value any) []byte {
	sep := byte(',')
	if len(b) == lengthSize {
		sep = '{'
	}
	k, _ := json.Marshal(key) // strings, maps of strings and numbers always encode
	v, _ := json.Marshal(value)
	return append(append(append(append(b, sep), k...), ':'), v...)
}
