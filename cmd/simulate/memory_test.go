package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"anelab"
	"anelab/cmd/simulate/internal/timing"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/checkpoint"
)

func TestTooLittleMemoryIsSaidWithTheBytes(t *testing.T) { // hand
	limit := byteSize{bytes: 4_100_000_000, text: "4.1GB"}
	require.NoError(t, enoughMemory(4_100_000_000, 8, limit))
	require.EqualError(t, enoughMemory(4_100_000_001, 8192, limit),
		"a context of 8192 needs 4100 MB of memory (4100000001 bytes) and --memory is 4.1GB; ask for less context, or pack the model in fewer bits")
	if timing.MemoryBytes() == 0 {
		t.Skip("this system does not say how much memory it has")
	}
	require.NoError(t, enoughMemory(1, 8, byteSize{}))
	require.ErrorContains(t, enoughMemory(1<<60, 8192, byteSize{}), "(1152921504606846976 bytes) and this machine has")
}

func TestKeysAndValuesAreCountedBeforeLoading(t *testing.T) { // invariant: what the loaded model says
	src, err := checkpoint.OpenFS(anelab.Files, "testdata/golden/tiny-e2b/bf16")
	require.NoError(t, err)
	defer src.Close()
	for _, mode := range arith.Modes {
		for _, o := range []gemma4.Options{{}, {KV: gemma4.KVFloat16}} {
			a, err := arith.New(mode, 1)
			require.NoError(t, err)
			m, err := gemma4.Load(src.Config, src, a, o)
			require.NoError(t, err)
			for _, context := range []int{1, 8, 1008} {
				before, err := gemma4.KVBytes(src.Config, a, o, context)
				require.NoError(t, err)
				require.Equal(t, m.KVBytes(context), before, "%s %d", mode, context)
			}
		}
	}
}

func TestWeightsAreCountedBeforeLoading(t *testing.T) { // hand: two bytes for each of the tensors that a step reads
	src, err := checkpoint.OpenFS(anelab.Files, "testdata/golden/tiny-e2b/bf16")
	require.NoError(t, err)
	defer src.Close()
	var want int64
	for _, name := range src.Names() {
		d, err := src.Describe(name)
		require.NoError(t, err)
		if name != "embed_tokens_per_layer.weight" {
			want += 2 * int64(d.Len())
		}
	}
	got, err := src.WeightBytes()
	require.NoError(t, err)
	require.Equal(t, want, got)
	computed, err := checkpoint.Open("formula:e2b-full") // its tables are in memory, too
	require.NoError(t, err)
	defer computed.Close()
	got, err = computed.WeightBytes()
	require.NoError(t, err)
	table, err := computed.Describe("embed_tokens_per_layer.weight")
	require.NoError(t, err)
	require.Greater(t, got, 2*int64(table.Len())+2*1536*4096)
}
