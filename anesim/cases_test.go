package anesim_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/anesim"
)

// SIM-01: being supported is not being placed. What the simulator knows of placement is what was observed of it, and a
// program whose ops are not known gets no word on it.
func TestSIM01SupportedIsNotPlaced(t *testing.T) {
	require.Empty(t, anesim.CheckSubject(anesim.Subject{Class: anesim.Mac}), "nothing is known, nothing is promised")
	found := anesim.CheckSubject(anesim.Subject{Class: anesim.Mac, Ops: []anesim.OpTrait{anesim.OpFloat32Cast, anesim.OpMatmul5D}})
	require.NotEmpty(t, found)
	require.Contains(t, found[0].Text, "placed on CPU")
}

// SIM-02: the bound of a dimension is a rule with its source and generation, not a total size.
func TestSIM02DimensionsAreRulesWithProvenance(t *testing.T) {
	for _, r := range anesim.LimitsOfSort(anesim.SortPredicate) {
		if r.ID != "context-dimension" && r.ID != "head-dimension" {
			continue
		}
		require.Contains(t, r.Evidence.Device, "A16 generation", r.ID)
		require.Equal(t, "reported", r.Evidence.Kind, r.ID)
		require.NotEmpty(t, r.Evidence.Source, r.ID)
	}
	small := anesim.Subject{Class: anesim.Mac, LongestRow: 65473, WeightBytes: 1e6} // small, and too long all the same
	require.Equal(t, anesim.VerdictNo, anesim.WorstVerdict(small))
	large := anesim.Subject{Class: anesim.Mac, LongestRow: 16384, WeightBytes: 1.3e9}
	require.NotEqual(t, anesim.VerdictNo, anesim.WorstVerdict(large))
}

// SIM-04: one, two, three and four chunks. Fewer chunks never lose by the sum law, four to two was measured at +2 %, and one
// chunk is refused instead of priced as the winner.
func TestSIM04ChunkCounts(t *testing.T) {
	d := device(t, "iphone17pro")
	rates := map[string]float64{}
	for _, name := range []string{"@4way", "@3way", "@2way"} {
		p := planned(t, name)
		require.False(t, anesim.Refused(anesim.Check(p, d)), name)
		rates[name] = anesim.Predict(p, d, anesim.Workload{}).TokPerSec
	}
	require.True(t, anesim.Refused(anesim.Check(planned(t, "@1way"), d)))
	require.Less(t, rates["@2way"]/rates["@4way"], 1.08)
	require.Less(t, rates["@3way"]/rates["@4way"], 1.07)
	// Dispatch alone, which is what was promised to go, is under 5 % of the token.
	x := anesim.Predict(planned(t, "@4way"), d, anesim.Workload{})
	var dispatch float64
	for _, c := range x.Terms() {
		if c.Resource == "dispatch" {
			dispatch += c.TimeS
		}
	}
	require.Less(t, dispatch/x.TimeS, 0.05)
}

// SIM-05: programs of 0.9, 1.4, 1.5, 1.8 and 2 GB, and E4B in four of 1.4 GB.
func TestSIM05CompileBudget(t *testing.T) {
	for _, c := range []struct {
		gigabytes float64
		want      anesim.Verdict
	}{{0.9, ""}, {1.0, anesim.VerdictWarning}, {1.4, anesim.VerdictWarning}, {1.5, anesim.VerdictWarning}, {1.8, anesim.VerdictWarning}, {1.94, anesim.VerdictNo}} {
		got := anesim.WorstVerdict(anesim.Subject{Class: anesim.IPhone, WeightBytes: c.gigabytes * 1e9})
		require.Equal(t, c.want, got, "%.2f GB", c.gigabytes)
	}
	found := anesim.CheckSubject(anesim.Subject{Class: anesim.IPhone, WeightBytes: 1.4e9})
	require.Equal(t, "package-near-gpu", found[0].Rule)
	require.Contains(t, found[0].Text, "may run on the GPU without a word")
	require.NotEmpty(t, found[0].Fix)

	// The planner splits before the limit: bounded chunks of the heavier encoding stay under it.
	p := planned(t, "L0-14 | L15-34+head w=int8g32")
	require.Equal(t, "package-near-gpu", anesim.Check(p, device(t, "mac"))[0].Rule)
}

// SIM-07: no price depends on what a mask is filled with; the simulator claims no difference.
func TestSIM07MasksHaveNoPrice(t *testing.T) {
	a := predict(t, "@4way", "iphone17pro", anesim.Workload{})
	for _, c := range a.Terms() {
		require.NotContains(t, c.Term, "mask")
	}
	b := predict(t, fmt.Sprintf("@4way context=%d", 2048), "iphone17pro", anesim.Workload{})
	require.Equal(t, a.TimeS, b.TimeS)
}
