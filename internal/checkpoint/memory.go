package checkpoint

import (
	"anelab/gemma4"
	"anelab/internal/checkpoint/packed"
)

// Memory is what running the model takes at least, in bytes, found without reading a weight: every weight that a step reads, as it is
// stored, and the keys and values of one sequence of that context, elemBytes a number. Tables that are looked up by row stay on disk.
func (c *Checkpoint) Memory(context, elemBytes int) (int64, error) {
	layers, err := c.Config.Layers()
	if err != nil {
		return 0, err
	}
	n := gemma4.KVBytes(layers, context, elemBytes)
	for _, name := range c.Names() {
		if name == "embed_tokens_per_layer.weight" || name == "embed_tokens.weight" && c.ownHead() {
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
