package paritytest

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/parity"
)

// rebatched runs cases in calls of another size, and leaves out the probabilities, whose shape tells the size of a call.
type rebatched struct {
	parity.Reference
	batch int
}

func (b rebatched) Run(ctx context.Context, c parity.Case) iter.Seq2[parity.Tap, error] {
	c.Batch = b.batch
	return func(yield func(parity.Tap, error) bool) {
		for t, err := range b.Reference.Run(ctx, c) {
			if t.Point != gemma4.PointProbs && !yield(t, err) {
				return
			}
		}
	}
}

// TestKVS08CachedEqualsUncached compares a prompt fed at once, where no cache is read, with the same prompt fed through the
// cache, in every numerics mode: a reference that fails this is none.
func TestKVS08CachedEqualsUncached(t *testing.T) { // invariant
	c := Golden(t, "golden_bf16.safetensors").Cases()[3].ParityCase()
	require.Len(t, c.Prompt, 21, "three windows")
	for _, mode := range arith.Modes {
		whole := rebatched{parity.Reference{Label: "at once", Model: TinyE2B(t, "bf16", mode)}, 0}
		for _, batch := range []int{1, 2, 4, 6, 7, 8, 13} {
			cached := whole
			cached.Label, cached.batch = fmt.Sprintf("in calls of %d", batch), batch
			r := Run(t, cached, whole, c, parity.Settings{})
			require.Greater(t, r.Compared, 60, "%s: the last row of every tensor", mode)
			require.Empty(t, r.OnlyWant)
		}
	}
}
