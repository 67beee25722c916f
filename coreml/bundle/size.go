package bundle

import (
	"anelab/coreml/census"
	"anelab/coreml/mil"
)

// WeightBytes are the stored bytes of the weights that a token reads.
func (b *Bundle) WeightBytes() (n int64) {
	for _, c := range b.Chunks {
		for _, share := range census.Tally(census.Weights(c.function(""))) {
			n += share.Bytes
		}
	}
	return n
}

// CacheBytes are the bytes of the caches of a sequence while the interpreter runs it, in float32.
func (b *Bundle) CacheBytes() (n int64) {
	for _, c := range b.Chunks {
		for _, in := range c.function("").Inputs {
			if t, ok := in.Type.AsTensor(); ok && (in.Type.Kind == mil.State || isCache(in.Name)) {
				n += 4 * elements(t.Shape)
			}
		}
	}
	return n
}

func elements(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= max(d, 0)
	}
	return n
}
