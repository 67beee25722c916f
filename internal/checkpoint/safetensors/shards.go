package safetensors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"anelab/internal/checkpoint/mapped"
	"anelab/internal/format"
)

// index is model.safetensors.index.json. Of its metadata only total_size is read, and only to say how much is missing:
// writers disagree on what total_size counts twice, and total_parameters leaves buffers out.
type index struct {
	shardOf   map[string]string // by tensor name
	totalSize uint64            // 0 = not given
}

// openShards opens every shard of the index in dir and joins them.
func openShards(dir mapped.Folder) (*Set, error) {
	path := dir.Path(IndexFile)
	f, err := dir.Open(IndexFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	ix, err := parseIndex(path, f.Data)
	if err != nil {
		return nil, err
	}
	s := &Set{path: path, tensors: map[string]entry{}}
	if err := s.join(dir, ix); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// shards lists the files the index names, sorted.
func (ix index) shards() []string {
	return slices.Compact(slices.Sorted(maps.Values(ix.shardOf)))
}

func parseIndex(path string, text []byte) (index, error) {
	ix := index{}
	dec := json.NewDecoder(bytes.NewReader(text))
	err := object(dec, func(key string) error {
		if key == "weight_map" {
			var err error
			ix.shardOf, err = parseMetadata(dec)
			return err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil || key != "metadata" {
			return err
		}
		var meta struct {
			TotalSize uint64 `json:"total_size"`
		}
		_ = json.Unmarshal(value, &meta) // informative: one that is no integer counts as not given
		ix.totalSize = meta.TotalSize
		return nil
	})
	if err == nil && len(bytes.TrimSpace(text[dec.InputOffset():])) > 0 {
		err = fmt.Errorf("text after the JSON object")
	}
	if err != nil {
		return ix, &format.Error{Path: path, Err: err}
	}
	return ix, ix.check(path)
}

// check refuses an index without tensors and shards outside the folder of the index.
func (ix index) check(path string) error {
	if len(ix.shardOf) == 0 {
		return &format.Error{Path: path, Field: "weight_map", Got: "no tensors"}
	}
	for _, name := range ix.shards() {
		if strings.ContainsAny(name, "/\\:\x00") || !strings.HasSuffix(name, ".safetensors") {
			return &format.Error{Path: path, Field: "weight_map", Got: fmt.Sprintf("shard %q", name),
				Want: "the name of a .safetensors file beside the index, without a folder"}
		}
	}
	return nil
}

// join opens the shards that are there, then complains about those that are not, so that it can say how many bytes are missing.
func (s *Set) join(dir mapped.Folder, ix index) error {
	var missing []string
	have := uint64(0)
	for _, name := range ix.shards() {
		if !dir.Has(name) {
			missing = append(missing, name)
			continue
		}
		bytes, err := s.add(dir, name, ix)
		if err != nil {
			return err
		}
		have += bytes
	}
	if len(missing) > 0 {
		return missingShards(s.path, missing, ix.totalSize, have)
	}
	for _, name := range slices.Sorted(maps.Keys(ix.shardOf)) {
		if !s.Has(name) {
			return &format.Error{Path: dir.Path(ix.shardOf[name]), Field: name, Got: "no such tensor", Want: "what " + IndexFile + " promises"}
		}
	}
	return nil
}

// add opens one shard, takes its tensors over and returns how many bytes of data they have.
func (s *Set) add(dir mapped.Folder, name string, ix index) (size uint64, err error) {
	f, err := dir.Open(name)
	if err != nil {
		return 0, err
	}
	s.files = append(s.files, f)
	shard, err := Parse(f.Path, f.Data)
	if err != nil {
		return 0, err
	}
	if s.metadata == nil {
		s.metadata = shard.metadata
	}
	for tensor, e := range shard.tensors {
		if owner := ix.shardOf[tensor]; owner != name {
			return 0, &format.Error{Path: f.Path, Field: tensor, Got: fmt.Sprintf("a tensor that %s places in %q", IndexFile, owner),
				Fix: "index and shards are not of one save"}
		}
		s.tensors[tensor] = e
		size += uint64(len(e.data))
	}
	return size, nil
}

func missingShards(path string, names []string, total, have uint64) error {
	e := &format.Error{Path: path, Field: strings.Join(names, ", "), Got: "no such file", Fix: "fetch the missing shards"}
	if total > have {
		e.Got += fmt.Sprintf(" (%d of %d bytes of tensors are missing)", total-have, total)
	}
	return e
}
