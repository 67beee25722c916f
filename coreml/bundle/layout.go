package bundle

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anelab/internal/format"
)

// layout is a set of chunks that together are the model.
type layout struct {
	name   string
	chunks []string
}

// layouts are the sets that runtimes know, in the order in which one is taken (spec forward.md §6.3). Folders of other cuts number
// their chunks from 1.
var layouts = []layout{
	{"3way", []string{"chunk1", "chunk2_3way", "chunk3_3way"}},
	{"4way", []string{"chunk1", "chunk2", "chunk3", "chunk4"}},
	{"topo1", []string{"chunk1_topoI", "chunk2_topoI", "chunk3_topoI"}},
	{"1way", []string{"merged_full"}},
	{"2way", []string{"merged_chunk1", "merged_chunk2"}},
	{"4way with states", []string{"chunk_1", "chunk_2", "chunk_3", "chunk_4"}},
	{"3way with states", []string{"chunk_1", "chunk_2", "chunk_3"}},
	{"one model", []string{"model"}},
}

// Layouts are the names of the sets that a folder holds completely, the one that is taken first.
func Layouts(dir string) []string {
	var names []string
	for _, l := range layoutsIn(dir) {
		names = append(names, l.name)
	}
	return names
}

func layoutsIn(dir string) []layout {
	var found []layout
	for _, l := range append(slices.Clip(layouts), numbered(dir)) {
		if len(l.chunks) > 0 && !slices.ContainsFunc(l.chunks, func(c string) bool { return chunkPath(dir, c) == "" }) {
			found = append(found, l)
		}
	}
	return found
}

// numbered is chunk1, chunk2, … as far as they go.
func numbered(dir string) layout {
	l := layout{name: "numbered chunks"}
	for i := 1; chunkPath(dir, fmt.Sprintf("chunk%d", i)) != ""; i++ {
		l.chunks = append(l.chunks, fmt.Sprintf("chunk%d", i))
	}
	if len(l.chunks) == 4 {
		return layout{} // 4way
	}
	return l
}

// chunkPath is the compiled form of a chunk if it is there, else its package, else "".
func chunkPath(dir, name string) string {
	compiled := filepath.Join(dir, name+".mlmodelc")
	if _, err := os.Stat(filepath.Join(compiled, "coremldata.bin")); err == nil {
		return compiled
	}
	source := filepath.Join(dir, name+".mlpackage")
	if _, err := os.Stat(source); err == nil {
		return source
	}
	return ""
}

// choose picks the set of that name, the first if the name is empty.
func choose(dir, name string) (layout, error) {
	found := layoutsIn(dir)
	if len(found) == 0 {
		return layout{}, &format.Error{Path: dir, Got: "no complete set of chunks", Want: "chunk1, chunk2_3way, chunk3_3way or another set",
			Fix: "copy all chunks of one layout into the folder; a compiled chunk counts only with its coremldata.bin"}
	}
	if name == "" {
		return found[0], nil
	}
	for _, l := range found {
		if l.name == name {
			return l, nil
		}
	}
	return layout{}, &format.Error{Path: dir, Field: "layout", Got: name, Want: strings.Join(Layouts(dir), " or ")}
}
