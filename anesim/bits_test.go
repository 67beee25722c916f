package anesim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/anesim"
)

// QNT-11: fewer bits shrink the file and what a token streams, by the bytes of the encoding; what is resident is another figure, with
// bounds and a source of its own, and never less than the file. (hand)
func TestQNT11DiskResidentAndPerTokenBytesAreThreeFigures(t *testing.T) {
	type figures struct {
		disk, perToken int64
		memory         anesim.Memory
	}
	of := func(weights string) figures {
		p := planned(t, "L0-7 w="+weights+" | L8-24 w="+weights+" | L25-34+head w="+weights)
		m := anesim.MemoryOf(p, anesim.Load{Functions: 1})
		return figures{m.DownloadBytes - m.DiskTables, p.Totals().WeightBytes, m}
	}
	dense := of("f16")
	for weights, share := range map[string]float64{"int8g32": 0.5, "int4g32": 0.25} {
		x := of(weights)
		require.InEpsilon(t, share, float64(x.disk)/float64(dense.disk), 0.02, weights)
		require.InEpsilon(t, share, float64(x.perToken)/float64(dense.perToken), 0.02, weights)
		item := x.memory.Items[0]
		require.Greater(t, item.Bytes, x.disk, "%s: resident is not the file", weights)
		require.GreaterOrEqual(t, item.Lo, x.disk)
		require.Less(t, item.Lo, item.Hi, "a range, since nobody measured this model")
		require.NotEmpty(t, item.Source)
	}
	// oracle: 754 MB of int8 took 1.6 GB, as 1.5 GB of fp16 did; the bounds hold both.
	eight, file := of("int8g32"), of("int8g32").disk
	require.InEpsilon(t, 1.6/0.754, float64(eight.memory.Items[0].Hi)/float64(file), 0.01)
	require.Greater(t, float64(dense.memory.Items[0].Hi)/float64(dense.disk), 1.6/1.5)
}
