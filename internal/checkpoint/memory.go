package checkpoint

import (
	"anelab/internal/checkpoint/formula"
	"anelab/internal/checkpoint/packed"
)

// WeightBytes is what the weights of a running model take at least, found without reading one: every weight as it is stored. Tables that
// are looked up by row stay on disk, except computed ones, which are nowhere else.
func (c *Checkpoint) WeightBytes() (int64, error) {
	var n int64
	for _, name := range c.Names() {
		if c.staysOnDisk(name) {
			continue
		}
		size, err := c.storedBytes(name)
		if err != nil {
			return 0, err
		}
		n += size
	}
	if c.ownHead() {
		n += c.store.(*packed.File).StoredBytes(packed.Head)
	}
	return n, nil
}

// staysOnDisk reports whether a step reads only a row of a tensor, from where it is mapped.
func (c *Checkpoint) staysOnDisk(name string) bool {
	if _, computed := c.store.(*formula.Weights); computed {
		return false
	}
	return name == "embed_tokens_per_layer.weight" || name == "embed_tokens.weight" && c.ownHead()
}

// ownHead reports whether the head is stored apart from the embedding table.
func (c *Checkpoint) ownHead() bool {
	f, ok := c.store.(*packed.File)
	return ok && f.HasHead()
}

// storedBytes is the size of a tensor as the checkpoint stores it.
func (c *Checkpoint) storedBytes(name string) (int64, error) {
	if f, ok := c.store.(*packed.File); ok {
		return f.StoredBytes(c.stored[name]), nil
	}
	t, err := c.Describe(name)
	return int64(t.Len()) * int64(t.DType.Size()), err
}
