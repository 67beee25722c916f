package bundle

import (
	"anelab/internal/checkpoint/mapped"
)

// Host gives the rows that the programs of a model do not hold themselves: fp16 numbers, already scaled.
type Host interface {
	// Vocabulary is the number of tokens there are.
	Vocabulary() int
	// Embed fills x [D] with the embedding of a token.
	Embed(x []float32, token int)
	// PLERaw fills raw [L·P] with the per-layer rows of a token.
	PLERaw(raw []float32, token int)
	// RopeSliding fills cos and sin [d] for a position, as sliding layers rotate.
	RopeSliding(cos, sin []float32, pos int)
	// RopeFull does the same for full layers.
	RopeFull(cos, sin []float32, pos int)
}

// Tables are the tables of a bundle. They are a [Host].
type Tables struct {
	tokens        int
	embed, ple    *table
	sliding, full ropeTable
}

// openTables maps all tables and holds them against the config.
func openTables(dir mapped.Folder, c *Config) (*Tables, error) {
	t := &Tables{tokens: c.VocabSize}
	if err := t.open(dir, c); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *Tables) open(dir mapped.Folder, c *Config) (err error) {
	if t.embed, err = openTable(dir, "embed_tokens", c.VocabSize, c.HiddenSize); err != nil {
		return err
	}
	if t.ple, err = openTable(dir, "embed_tokens_per_layer", c.VocabSize, c.PerLayerDim*c.NumHiddenLayers); err != nil {
		return err
	}
	t.embed.factor, t.ple.factor = c.EmbedScale, c.PerLayerEmbedScale
	if t.sliding, err = openRope(dir, "sliding", c.HeadDim, c.ContextLength); err != nil {
		return err
	}
	t.full, err = openRope(dir, "full", c.GlobalHeadDim, c.ContextLength)
	return err
}

func (t *Tables) close() {
	t.embed.close()
	t.ple.close()
}

// Vocabulary implements [Host].
func (t *Tables) Vocabulary() int { return t.tokens }

// Embed implements [Host].
func (t *Tables) Embed(x []float32, token int) { t.embed.row(x, token) }

// PLERaw implements [Host].
func (t *Tables) PLERaw(raw []float32, token int) { t.ple.row(raw, token) }

// RopeSliding implements [Host].
func (t *Tables) RopeSliding(cos, sin []float32, pos int) { t.sliding.rows(cos, sin, pos) }

// RopeFull implements [Host].
func (t *Tables) RopeFull(cos, sin []float32, pos int) { t.full.rows(cos, sin, pos) }
