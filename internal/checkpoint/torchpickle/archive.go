package torchpickle

import (
	"archive/zip"
	"bytes"
	"cmp"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"anelab/internal/format"
)

const (
	pickleRecord = "data.pkl"
	maxRecords   = 1 << 16 // a large model has a few thousand tensors
	maxPickle    = 4 << 20 // about 200 bytes per tensor
)

// magic starts the first of the pickles of a legacy file: the integer 0x1950a86a20f9469cfc6c, as protocols 2 to 5 and as the
// text protocols write it.
var magic = [...]string{"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", "L119547037146038801333356L\n"}

// checkForm refuses everything but a zip archive, by name if it is another form that torch has written.
func checkForm(path string, data []byte) error {
	const ustarAt = 257
	start := string(data[:min(len(data), 64)])
	refuse := func(got string) error {
		return &format.Error{Path: path, Got: got, Want: "the zip form of torch 1.6 and later", Fix: "load it and save it again with a current torch, or as safetensors"}
	}
	switch {
	case strings.HasPrefix(start, "PK\x03\x04"):
		return nil
	case strings.Contains(start, magic[0]), strings.Contains(start, magic[1]):
		return refuse("the legacy form of torch.save (a stream of pickles)")
	case len(data) > ustarAt+5 && string(data[ustarAt:ustarAt+5]) == "ustar":
		return refuse("the tar form of early torch")
	case len(start) > 1 && start[0] == 0x80 && start[1] <= 5:
		return refuse(fmt.Sprintf("a bare pickle of protocol %d", start[1]))
	}
	return refuse("no zip archive")
}

// archive is the records of a file by their names below the top folder; they are parts of the file.
type archive struct {
	pickle  []byte
	records map[string][]byte
}

// openArchive finds every record and checks that the records are plain: stored, in one folder, apart from each other.
func openArchive(path string, data []byte) (archive, error) {
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return archive{}, &format.Error{Path: path, Err: err}
	}
	if len(r.File) > maxRecords {
		return archive{}, &format.Error{Path: path, Got: fmt.Sprintf("%d records", len(r.File)), Want: fmt.Sprintf("at most %d", maxRecords)}
	}
	a := archive{records: make(map[string][]byte, len(r.File))}
	places := make([]place, 0, len(r.File))
	folder := ""
	for _, f := range r.File {
		top, name, _ := strings.Cut(f.Name, "/")
		if folder == "" {
			folder = top
		}
		p, err := locate(f, len(data))
		if err == nil && (top != folder || name == "") {
			err = fmt.Errorf("a record outside the folder %q", folder)
		}
		if _, twice := a.records[name]; err == nil && twice {
			err = fmt.Errorf("the record is there twice")
		}
		if err != nil {
			return archive{}, &format.Error{Path: path, Field: fmt.Sprintf("record %q", clip(f.Name)), Err: err}
		}
		a.records[name] = data[p.data:p.end:p.end]
		places = append(places, p)
		if name == pickleRecord && crc32.ChecksumIEEE(a.records[name]) != f.CRC32 {
			return archive{}, &format.Error{Path: path, Field: name, Got: "a wrong checksum", Fix: "the file is damaged: fetch it again"}
		}
	}
	if err := checkApart(places); err != nil {
		return archive{}, &format.Error{Path: path, Err: err}
	}
	return a, a.check(path)
}

// place is where a record lies in the file: its header starts at or before head, its bytes are [data, end).
type place struct {
	name            string
	head, data, end int
}

// locate checks what the directory of the archive says about one record and finds its bytes.
func locate(f *zip.File, size int) (place, error) {
	const encrypted, headerSize = 1, 30
	switch {
	case slices.Contains(strings.Split(f.Name, "/"), "..") || strings.ContainsAny(f.Name, "\\\x00") || strings.HasPrefix(f.Name, "/"):
		return place{}, fmt.Errorf("a name that leaves the archive")
	case f.Flags&encrypted != 0:
		return place{}, fmt.Errorf("encrypted")
	case f.Method != zip.Store:
		return place{}, fmt.Errorf("compressed (method %d); torch stores its records", f.Method)
	case f.CompressedSize64 != f.UncompressedSize64:
		return place{}, fmt.Errorf("%d bytes stored for %d", f.CompressedSize64, f.UncompressedSize64)
	}
	at, err := f.DataOffset()
	if err != nil {
		return place{}, err
	}
	if at < 0 || at > int64(size) || f.CompressedSize64 > uint64(int64(size)-at) {
		return place{}, fmt.Errorf("%d bytes at offset %d of a file of %d", f.CompressedSize64, at, size)
	}
	data := int(at)
	return place{f.Name, data - headerSize - len(f.Name), data, data + int(f.CompressedSize64)}, nil
}

// checkApart refuses records that share bytes: one small body named many times multiplies work.
func checkApart(places []place) error {
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.head, b.head) })
	for i := 1; i < len(places); i++ {
		if places[i].head < places[i-1].end {
			return fmt.Errorf("records %q and %q overlap", clip(places[i-1].name), clip(places[i].name))
		}
	}
	return nil
}

// check refuses programs and big-endian data, and finds the pickle.
func (a *archive) check(path string) error {
	for name := range a.records {
		if name == "constants.pkl" || strings.HasPrefix(name, "code/") {
			return &format.Error{Path: path, Got: "a TorchScript program", Want: "a state dict", Fix: "save model.state_dict()"}
		}
	}
	if order, ok := a.records["byteorder"]; ok && string(order) != "little" {
		return &format.Error{Path: path, Field: "byteorder", Got: fmt.Sprintf("%q", clip(string(order))), Want: `"little"`}
	}
	pickle, ok := a.records[pickleRecord]
	switch {
	case !ok:
		return &format.Error{Path: path, Got: "no " + pickleRecord, Want: "a file written by torch.save"}
	case len(pickle) > maxPickle:
		return &format.Error{Path: path, Field: pickleRecord, Got: fmt.Sprintf("%d bytes", len(pickle)), Want: fmt.Sprintf("at most %d", maxPickle)}
	}
	a.pickle = pickle
	return nil
}

// clip shortens text of the file for a message.
func clip(s string) string {
	const most = 200
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
