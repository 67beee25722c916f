package interp

import (
	"context"
	"path/filepath"
	"testing"

	"anelab/internal/shareddata"

	"github.com/stretchr/testify/require"
)

// BenchmarkConvertedChunk times the chunks of CoreML-LLM's converter, which are E2B in miniature: what is left is the cost of the ops
// themselves, not of their elements.
func BenchmarkConvertedChunk(b *testing.B) {
	for _, pattern := range []string{"coreml/chunks/4chunk_w4/*.mlpackage", "coreml/chunks/stateful_w4/*.mlpackage"} {
		for _, path := range shareddata.Cases(b, pattern) {
			name := filepath.Base(filepath.Dir(path)) + "/" + filepath.Base(path)
			b.Run(name, func(b *testing.B) {
				f := openFixture(b, path, Fast)
				c := f.Cases[0]
				inputs := f.tensors(b, c.Name+"/in/")
				state, err := f.model.NewState(c.Function)
				require.NoError(b, err)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := f.model.Run(context.Background(), c.Function, inputs, Call{State: state}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(len(f.model.functions[c.Function].steps)), "ops")
			})
		}
	}
}
