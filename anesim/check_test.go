package anesim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/anesim/evidence"
)

func ids(found []Finding, v Verdict) []string {
	var all []string
	for _, f := range found {
		if f.Verdict == v {
			all = append(all, f.Rule)
		}
	}
	return all
}

func TestCheck(t *testing.T) { // hand, against limits.csv
	m := e2b(t)
	mac := phone()
	mac.Class = Mac
	for _, c := range []struct {
		name, layout string
		device       Device
		no, warning  []string
	}{
		{"SIM-04 one program on the phone", "L0-34+head", phone(), []string{"whole-model-explicit-iphone"}, []string{"package-size-iphone"}},
		{"one program on the Mac", "L0-34+head", mac, nil, nil},
		{"shipped layouts", "@4way", phone(), nil, nil},
		{"merged pair", "L0-14 | L15-34+head", phone(), nil, nil},
		{"longer than anything tried", "L0-11 | L12-34+head", phone(), nil, []string{"layers-beyond-tried-iphone"}},
		{"SIM-05 over the compile budget", "L0-14 | L15-34+head w=int8g32", phone(), nil, []string{"package-near-gpu"}},
		{"SIM-05 far over it", "L0-14 | L15-34+head w=f16", phone(), []string{"package-on-gpu"}, nil},
		{"two bits", "L0-7 w=int2g32 | L8-14 | L15-24 | L25-34+head", phone(), nil, []string{"few-bits"}},
		{"context over a dimension", "@2way context=65473", mac, []string{"context-dimension", "context-dimension"}, nil},
		{"context of a dimension", "@2way context=65472", mac, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := Check(planOf(t, m, c.layout), c.device)
			require.Equal(t, c.no, ids(found, VerdictNo))
			require.Equal(t, c.warning, ids(found, VerdictWarning))
			require.Equal(t, len(c.no) > 0, Refused(found))
			for i := 1; i < len(found); i++ {
				require.LessOrEqual(t, rank[found[i-1].Verdict], rank[found[i].Verdict])
			}
		})
	}
}

func TestCheckNamesTheLoadFailure(t *testing.T) { // hand
	f := Check(planOf(t, e2b(t), "L0-34+head"), phone())[0]
	require.Contains(t, f.Text, `35 layers and the head in one program do not load: "Must re-compile the E5 bundle"`)
	require.Equal(t, "measured", f.Evidence.Kind)
	require.Equal(t, "L0-34+head", f.Chunk)
}

// oracle: every row of limits.csv is behind at least one record, and every record behind a row, but for the two of ane.md.
func TestEveryLimitIsARecord(t *testing.T) {
	behind := map[Evidenced][]string{}
	sorts := map[RecordSort]int{}
	seen := map[string]bool{}
	for _, r := range LimitRecords() {
		require.False(t, seen[r.ID], "%s twice", r.ID)
		seen[r.ID] = true
		behind[r.Evidence] = append(behind[r.Evidence], r.ID)
		sorts[r.Sort]++
		require.Equal(t, r.Sort == SortPredicate, r.Verdict != "", r.ID)
		require.Equal(t, r.Sort == SortPredicate, r.Note == "", "%s: a fact says what it is good for", r.ID)
	}
	for _, l := range evidence.Limits() {
		row := Evidenced{Limit: l.Limit, Condition: l.Condition, Device: l.Device, Outcome: l.Outcome, Kind: l.Kind, Source: l.Source}
		require.NotEmpty(t, behind[row], "no record for line %d: %s, %s", l.Line, l.Limit, l.Condition)
		delete(behind, row)
	}
	for e, records := range behind {
		require.Contains(t, e.Source, "spec ane.md", records)
	}
	t.Logf("54 rows of limits.csv in records: %v", sorts)
}

// hand: every predicate has a program that meets it and a neighbour that does not.
func TestPredicatesOnBothSides(t *testing.T) {
	pairs := map[string][2]Subject{
		"whole-model-explicit-iphone":        {{Class: IPhone, Layers: 35, Head: true}, {Class: IPhone, Layers: 34, Head: true}},
		"whole-model-mac":                    {{Class: Mac, Layers: 35, Head: true}, {Class: IPhone, Layers: 35, Head: true}},
		"layers-beyond-tried-iphone":         {{Class: IPhone, Layers: 22}, {Class: IPhone, Layers: 21}},
		"package-on-gpu":                     {{WeightBytes: 1.94e9}, {WeightBytes: 1.93e9}},
		"package-near-gpu":                   {{WeightBytes: 1.4e9}, {WeightBytes: 1.39e9}},
		"package-size-iphone":                {{Class: IPhone, WeightBytes: 0.95e9}, {Class: IPhone, WeightBytes: 0.94e9}},
		"program-2gb":                        {{Class: Mac, WeightBytes: 2e9}, {Class: Mac, WeightBytes: 1.99e9}},
		"few-bits":                           {{Bits: 3}, {Bits: 4}},
		"argmax-on-cpu":                      {{Head: true}, {Head: false}},
		"context-dimension":                  {{LongestRow: 65473}, {LongestRow: 65472}},
		"head-dimension":                     {{HeadRows: 65537}, {HeadRows: 65536}},
		"whole-model-state-functions-iphone": {{Class: IPhone, Layers: 35, StateTypes: 1, QueryTokens: 8, Functions: 2}, {Class: IPhone, Layers: 35, StateTypes: 1, QueryTokens: 8, Functions: 1}},
		"conv-state-beside-kv":               {{Class: Mac, StateTypes: 2, ConvState: true}, {Class: Mac, StateTypes: 2}},
		"three-states":                       {{StateTypes: 3}, {StateTypes: 2}},
		"state-functions-iphone":             {{Class: IPhone, StateTypes: 1, Functions: 2, QueryTokens: 4}, {Class: Mac, StateTypes: 1, Functions: 2, QueryTokens: 4}},
		"state-prefill-1.4gb-iphone":         {{Class: IPhone, StateTypes: 1, WeightBytes: 1.4e9, QueryTokens: 8}, {Class: IPhone, StateTypes: 1, WeightBytes: 1.4e9, QueryTokens: 1}},
		"state-old-tools":                    {{StateTypes: 1, OldStateTools: true}, {StateTypes: 1}},
		"state-shift-write":                  {{Class: Mac, StateTypes: 1, ShiftWrite: true, TiedEmbedding: true}, {Class: Mac, StateTypes: 1, TiedEmbedding: true}},
		"state-alias-output-iphone":          {{Class: IPhone, StateTypes: 1, StateOutputs: true}, {Class: Mac, StateTypes: 1, StateOutputs: true}},
		"scatter-write-iphone":               {{Class: IPhone, ScatterWrite: true, QueryTokens: 32}, {Class: IPhone, ScatterWrite: true, QueryTokens: 8}},
		"palette-after-merge":                {{Functions: 2, LatePalette: true}, {Functions: 1, LatePalette: true}},
		"quantised-activations-iphone":       {{Class: IPhone, ActivationBits: 8}, {Class: IPhone, ActivationBits: 16}},
		"quantised-activations-mac":          {{Class: Mac, ActivationBits: 8}, {Class: IPhone, ActivationBits: 8}},
		"lut-per-block":                      {{BlockLUT: true}, {}},
		"lut-channel-scale":                  {{Class: Mac, Bits: 4, ChannelScale: true}, {Class: Mac, Bits: 8, ChannelScale: true}},
		"linear-4-bit":                       {{Bits: 4, LinearWeights: true}, {Bits: 4}},
		"depthwise-on-cpu":                   {{Ops: []OpTrait{OpDepthwise}}, {Ops: []OpTrait{OpTiledMLP}}},
		"ops-on-cpu":                         {{Ops: []OpTrait{OpDepthwise, OpInt32}}, {Ops: []OpTrait{OpDepthwise}}},
		"tiled-mlp-graph-iphone":             {{Class: IPhone, Ops: []OpTrait{OpTiledMLP}}, {Class: IPhone, Ops: []OpTrait{OpArgmax}}},
		"runtime-gather":                     {{Ops: []OpTrait{OpExpertGather}}, {Ops: []OpTrait{OpCumsum}}},
		"weights-as-inputs":                  {{WeightInputs: 415e6}, {}},
		"topk-indices":                       {{TopKOver: 65537}, {TopKOver: 65536}},
		"flexible-shapes-iphone":             {{Class: IPhone, FlexibleShapes: true}, {Class: IPhone}},
		"two-queues-one-engine":              {{Queues: 2}, {Queues: 1}},
		"resident-programs-iphone":           {{Class: IPhone, ResidentPrograms: 16}, {Class: IPhone, ResidentPrograms: 15}},
		"backed-input-iphone":                {{Class: IPhone, BackedInput: true}, {Class: Mac, BackedInput: true}},
		"infrequent-reshapes-iphone":         {{Class: IPhone, InfrequentReshapes: true}, {Class: IPhone}},
	}
	for _, r := range LimitsOfSort(SortPredicate) {
		pair, ok := pairs[r.ID]
		require.True(t, ok, "%s is not tested", r.ID)
		require.True(t, r.Meets(pair[0]), "%s must be met", r.ID)
		require.False(t, r.Meets(pair[1]), "%s must not be met", r.ID)
		require.NotEmpty(t, r.Text(pair[0]))
		rules := map[string]bool{}
		for _, f := range CheckSubject(pair[0]) {
			rules[f.Rule] = true
		}
		require.True(t, rules[r.ID], r.ID)
		delete(pairs, r.ID)
	}
	require.Empty(t, pairs, "pairs of predicates that do not exist")
	for _, r := range append(LimitsOfSort(SortFact), LimitsOfSort(SortRefuted)...) {
		require.False(t, r.Meets(Subject{Class: IPhone, Layers: 35, Head: true, WeightBytes: 3e9, StateTypes: 3}), r.ID)
	}
}

// invariant: nothing fires on what is not known.
func TestUnknownSubjectsMeetNothing(t *testing.T) {
	require.Empty(t, CheckSubject(Subject{Class: IPhone}))
	require.Empty(t, CheckSubject(Subject{Class: Mac}))
}
