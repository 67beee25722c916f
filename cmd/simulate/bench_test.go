package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"anelab"
	"anelab/cmd/simulate/internal/timing"
	"anelab/internal/checkpoint"
)

func TestTooLittleMemoryIsSaidWithTheBytes(t *testing.T) {
	if timing.MemoryBytes() == 0 {
		t.Skip("this system does not say how much memory it has")
	}
	require.NoError(t, enoughMemory(1, 8))
	require.ErrorContains(t, enoughMemory(1<<60, 8192), "a context of 8192 needs 1.15e+09 GB of memory (1152921504606846976 bytes) and this machine has")
}

func TestMemoryIsCountedBeforeLoading(t *testing.T) { // hand: rows of full layers grow with the context, those of windows up to it
	src, err := checkpoint.OpenFS(anelab.Files, "testdata/golden/tiny-e2b/bf16")
	require.NoError(t, err)
	defer src.Close()
	short, err := src.Memory(8, 2)
	require.NoError(t, err)
	long, err := src.Memory(1008, 2)
	require.NoError(t, err)
	layers, err := src.Config.Layers()
	require.NoError(t, err)
	var full int64
	for _, y := range layers {
		if y.OwnsKV() && y.Window == 0 {
			full += int64(4 * y.KVWidth())
		}
	}
	window := int64(0)
	for _, y := range layers {
		if y.OwnsKV() && y.Window > 8 {
			window += int64(4*y.KVWidth()) * int64(y.Window-8)
		}
	}
	require.Equal(t, 1000*full+window, long-short)
}
