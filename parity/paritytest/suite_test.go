package paritytest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/chunking"
	"anelab/gemma4"
	"anelab/parity"
)

func TestReference(t *testing.T) {
	RunAll(t, Subject{Batches: []int{0, 1, 5}, New: func(m *gemma4.Model, _ gemma4.Source) (parity.Backend, error) { return parity.Reference{Model: m}, nil }})
}

func TestChunked(t *testing.T) {
	for _, layout := range []string{"L0-4 | L5-9+head", "L0-2 | L3-4 | L5-8 | L9 | head"} {
		t.Run(layout, func(t *testing.T) {
			RunAll(t, Subject{Batches: []int{1, 5}, New: func(m *gemma4.Model, _ gemma4.Source) (parity.Backend, error) {
				cm, err := chunking.NewModel(m.Config)
				require.NoError(t, err)
				l, err := chunking.Parse(layout, cm)
				require.NoError(t, err)
				l.Context = 64
				plan, err := l.Plan(cm)
				require.NoError(t, err)
				return parity.Chunked{Model: m, Plan: plan}, nil
			}})
		})
	}
}
