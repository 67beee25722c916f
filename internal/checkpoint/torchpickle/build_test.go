package torchpickle

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
)

// Pieces of protocol 2, assembled by hand.

// bin is a model file with a pickle and other records.
func bin(pickle string, records map[string]string) []byte {
	return zipOf(func(w *zip.Writer) {
		store(w, "m/data.pkl", pickle)
		for _, name := range slices.Sorted(maps.Keys(records)) {
			store(w, "m/"+name, records[name])
		}
	})
}

// zipOf is an archive filled by add.
func zipOf(add func(w *zip.Writer)) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	add(w)
	must(w.Close())
	return b.Bytes()
}

func store(w *zip.Writer, name, data string) {
	f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
	must(err)
	_, err = f.Write([]byte(data))
	must(err)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func program(body string) string        { return "\x80\x02" + body + "." }
func global(module, name string) string { return "c" + module + "\n" + name + "\n" }

func text(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

func integer(n int) string {
	return "J" + string(binary.LittleEndian.AppendUint32(nil, uint32(n)))
}

func tuple(items ...string) string {
	s := "("
	for _, item := range items {
		s += item
	}
	return s + "t"
}

func numbers(n []int) string {
	items := make([]string, len(n))
	for i, v := range n {
		items[i] = integer(v)
	}
	return tuple(items...)
}

// dictOf is a whole pickle: a dict with one entry.
func dictOf(name, value string) string { return program("}" + text(name) + value + "s") }

func storageOf(class, key string, count int) string {
	return tuple(text("storage"), global("torch", class), text(key), text("cpu"), integer(count)) + "Q"
}

// tensorOf calls _rebuild_tensor_v2.
func tensorOf(class, key string, count, offset int, size, stride []int) string {
	return rebuilt(storageOf(class, key, count), integer(offset), numbers(size), numbers(stride))
}

func rebuilt(storage, offset, size, stride string) string {
	hooks := global("collections", "OrderedDict") + ")R"
	return global("torch._utils", "_rebuild_tensor_v2") + tuple(storage, offset, size, stride, "\x89", hooks) + "R"
}
