package chunking

import (
	"fmt"

	"anelab/gemma4"
	"anelab/internal/format"
)

// Model is the resolved configuration that plans are made for. Make one with [NewModel].
type Model struct {
	Config gemma4.Config
	Layers []gemma4.Layer

	kinds      [2]kindFacts // by gemma4.Kind
	cacheWidth int          // values in every cache row: the widest head of the model ("512")
}

// kindFacts is what the layers of one kind have in common. Ports are declared per kind, so they take the largest.
type kindFacts struct {
	layers     int // 0: the model has none, and no port of a chunk mentions the kind
	kvHeads    int
	headDim    int
	window     int // 0 for full
	donor      int // layer that later layers of the kind read; −1 when nobody shares
	lastReader int // last layer that reads the donor; −1 when nobody shares
}

// maxParameters keeps every count of a plan far inside an int64, whatever a config asks for.
const maxParameters = 1 << 44

// NewModel resolves what planning needs from a configuration, once.
func NewModel(cfg gemma4.Config) (*Model, error) {
	layers, err := cfg.Layers()
	if err != nil {
		return nil, err
	}
	m := &Model{Config: cfg, Layers: layers}
	m.kinds[gemma4.Sliding], m.kinds[gemma4.Full] = gather(layers, gemma4.Sliding), gather(layers, gemma4.Full)
	m.cacheWidth = max(m.kinds[gemma4.Sliding].headDim, m.kinds[gemma4.Full].headDim)
	if n := m.parameters(); n > maxParameters {
		return nil, &format.Error{Field: "intermediate_size", Got: fmt.Sprintf("%.3g parameters in all", n), Want: "at most 1.7e13"}
	}
	return m, nil
}

func gather(layers []gemma4.Layer, kind gemma4.Kind) kindFacts {
	k := kindFacts{donor: -1, lastReader: -1}
	for _, l := range layers {
		if l.Kind != kind {
			continue
		}
		k.layers++
		k.kvHeads, k.headDim, k.window = max(k.kvHeads, l.KVHeads), max(k.headDim, l.HeadDim), max(k.window, l.Window)
		if !l.OwnsKV() {
			k.donor, k.lastReader = l.KVSource, l.Index
		}
	}
	return k
}

// parameters is a float64 on purpose: it must not wrap for the configurations it is there to refuse.
func (m *Model) parameters() float64 {
	d := float64(m.Config.HiddenSize)
	n := d * float64(m.Config.VocabSize)
	for _, l := range m.Layers {
		n += d * (2*float64(l.Heads*l.HeadDim) + 2*float64(l.KVWidth()) + 3*float64(l.FFN) + 3*float64(m.Config.HiddenSizePerLayer))
	}
	return n
}

// hasPLE reports whether the model has per-layer embeddings; without them no port or op mentions them.
func (m *Model) hasPLE() bool { return m.Config.HiddenSizePerLayer > 0 }

// pleWidth is the length of the combined per-layer input: L·P.
func (m *Model) pleWidth() int { return len(m.Layers) * m.Config.HiddenSizePerLayer }
