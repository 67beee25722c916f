package view

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"anelab/chunking"
	"anelab/chunking/emit"
	"anelab/cmd/simulate/internal/texttab"
)

// Emit is what was written for a layout.
type Emit struct {
	Made       Made
	Checkpoint string
	Layout     string
	Context    int
	To         string
	Chunks     []EmittedChunk
	Files      []EmittedFile
}

// EmittedChunk is one package.
type EmittedChunk struct {
	Name      string
	Chunk     *chunking.Chunk
	Functions []string
	States    int
	Bytes     int64
}

// EmittedFile is one file beside the packages.
type EmittedFile struct {
	Name  string
	Bytes int64
}

// Measure looks at what is in the folder.
func (r *Emit) Measure(dir string, chunks []*emit.Chunk) error {
	for _, c := range chunks {
		e := EmittedChunk{Name: c.Name + ".mlpackage", Chunk: c.Chunk}
		for _, f := range c.Package.Program.Functions {
			e.Functions, e.States = append(e.Functions, f.Name), len(f.States())
		}
		var err error
		if e.Bytes, err = sizeOf(filepath.Join(dir, e.Name)); err != nil {
			return err
		}
		r.Chunks = append(r.Chunks, e)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range entries {
		if strings.HasSuffix(f.Name(), ".mlpackage") {
			continue
		}
		size, err := sizeOf(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		r.Files = append(r.Files, EmittedFile{f.Name(), size})
	}
	return nil
}

// sizeOf sums the files below a path.
func sizeOf(path string) (int64, error) {
	var n int64
	err := filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}

func (r *Emit) total() (bytes int64) {
	for _, c := range r.Chunks {
		bytes += c.Bytes
	}
	for _, f := range r.Files {
		bytes += f.Bytes
	}
	return bytes
}

// Page lists the packages, then the files beside them.
func (r *Emit) Page(p *texttab.Page) {
	p.Head(r.Checkpoint, r.Layout, fmt.Sprintf("context %d", r.Context))
	p.Gap()
	t := texttab.NewTable(texttab.L("package"), texttab.L("layers"), texttab.L("functions"), texttab.L("weights"), texttab.R("MB"))
	for _, c := range r.Chunks {
		functions := strings.Join(c.Functions, ", ")
		if c.States > 0 {
			functions += fmt.Sprintf(" (%s)", plural(c.States, "state"))
		}
		t.Row(c.Name, c.Chunk.String(), functions, c.Chunk.Weights.String(), mega(c.Bytes))
	}
	p.Table(t)
	if len(r.Files) > 0 {
		p.Gap()
		files := texttab.NewTable(texttab.L("beside them"), texttab.R("MB"))
		for _, f := range r.Files {
			files.Row(f.Name, mega(f.Bytes))
		}
		p.Table(files)
	}
	p.Gap()
	p.Answer("%s: %s, %s MB", r.To, plural(len(r.Chunks), "package"), mega(r.total()))
}

type emitDocument struct {
	Made
	Checkpoint string                `json:"checkpoint"`
	Layout     string                `json:"layout"`
	Context    int                   `json:"context"`
	To         string                `json:"to"`
	Bytes      int64                 `json:"bytes"`
	Chunks     []emittedDocument     `json:"chunks"`
	Files      []emittedFileDocument `json:"files"`
}

type emittedDocument struct {
	File        string   `json:"file"`
	Chunk       string   `json:"chunk"`
	Functions   []string `json:"functions"`
	States      int      `json:"states"`
	Weights     string   `json:"weights"`
	Bytes       int64    `json:"bytes"`
	WeightBytes int64    `json:"weight_bytes"`
	InputBytes  int64    `json:"input_bytes"`
	OutputBytes int64    `json:"output_bytes"`
	MACs        int64    `json:"macs"`
}

type emittedFileDocument struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

// Document is every package with what its plan counts, and every file.
func (r *Emit) Document() any {
	d := emitDocument{Made: r.Made, Checkpoint: r.Checkpoint, Layout: r.Layout, Context: r.Context, To: r.To, Bytes: r.total(),
		Chunks: []emittedDocument{}, Files: []emittedFileDocument{}}
	for _, c := range r.Chunks {
		t := &c.Chunk.Totals
		d.Chunks = append(d.Chunks, emittedDocument{c.Name, c.Chunk.String(), c.Functions, c.States, c.Chunk.Weights.String(), c.Bytes,
			t.WeightBytes, t.InputBytes, t.OutputBytes, t.MACs})
	}
	for _, f := range r.Files {
		d.Files = append(d.Files, emittedFileDocument{f.Name, f.Bytes})
	}
	return d
}

// Header of the records.
func (r *Emit) Header() []string {
	return []string{"file", "chunk", "functions", "states", "weights", "bytes", "weight_bytes", "input_bytes", "output_bytes", "macs"}
}

// Records are the packages.
func (r *Emit) Records() [][]string {
	var all [][]string
	for _, c := range r.Chunks {
		t := &c.Chunk.Totals
		all = append(all, []string{c.Name, c.Chunk.String(), strings.Join(c.Functions, " "), fmt.Sprint(c.States), c.Chunk.Weights.String(), fmt.Sprint(c.Bytes),
			fmt.Sprint(t.WeightBytes), fmt.Sprint(t.InputBytes), fmt.Sprint(t.OutputBytes), fmt.Sprint(t.MACs)})
	}
	return all
}
