package place

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"anelab/coreml/mil"
	"anelab/coreml/miltext"
	"anelab/internal/shareddata"

	"github.com/stretchr/testify/require"
)

// Compiled texts with placement are oracles: Apple's compiler wrote estimates, choices and reasons (coreml/miltext/README.md).

// text is one of them.
type text struct {
	name    string
	f       *mil.Function
	records []Record
	costs   Costs
}

// forTexts runs a test on the texts that come with the package, and on all that the shared data has.
func forTexts(t *testing.T, test func(t *testing.T, texts []text)) {
	t.Run("testdata", func(t *testing.T) {
		paths, err := filepath.Glob(filepath.Join("testdata", "*.mil"))
		require.NoError(t, err)
		require.NotEmpty(t, paths)
		test(t, readTexts(t, paths))
	})
	t.Run("shared", func(t *testing.T) { test(t, readTexts(t, shareddata.Cases(t, "coreml/miltext/analytics_*/*.mil"))) })
}

func readTexts(t *testing.T, paths []string) []text {
	var all []text
	for _, path := range paths {
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		p, _, err := miltext.Parse(path, string(source))
		require.NoError(t, err)
		for _, f := range p.Functions {
			records, costs, ok, err := Recorded(f)
			require.NoError(t, err)
			require.True(t, ok, path)
			all = append(all, text{filepath.Base(filepath.Dir(path)) + "/" + filepath.Base(path), f, records, costs})
		}
	}
	return all
}

// oracle: with the compiler's own estimates, its choice is a cheapest path in every text.
func TestRecordedPlacementIsACheapestPath(t *testing.T) { forTexts(t, recordedIsCheapest) }

func recordedIsCheapest(t *testing.T, texts []text) {
	same, ops := 0, 0
	for _, x := range texts {
		require.Equal(t, DefaultCosts, x.costs, x.name)
		var steps []Seconds
		var chosen []Backend
		for _, r := range x.records {
			steps, chosen = append(steps, r.Seconds), append(chosen, r.Selected)
		}
		paths := Cheapest(steps, x.costs)
		require.InDelta(t, paths.Seconds, Cost(steps, chosen, x.costs), tie, x.name)
		require.InDelta(t, paths.Seconds, Cost(steps, paths.Best, x.costs), tie, x.name)
		for i, b := range paths.Best {
			require.InDelta(t, paths.Seconds, paths.Through[i][b], tie, x.name)
			if b.Unit() == chosen[i].Unit() {
				same++
			}
			ops++
		}
	}
	t.Logf("labels equal, ties included: %d of %d ops", same, ops)
}

// oracle: where ops run and what the engine refuses, from the program alone, beside two that know nothing.
func TestPlacementFromTheProgramAlone(t *testing.T) { forTexts(t, fromTheProgramAlone) }

func fromTheProgramAlone(t *testing.T, texts []text) {
	right, ane, ops, perfect := 0, 0, 0, 0
	for _, x := range texts {
		p := Predict(x.f, Options{})
		require.Len(t, p.Ops, len(x.records), x.name)
		wrong := 0
		for i, r := range x.records {
			ops++
			if r.Selected == ANE {
				ane++
			}
			if p.Ops[i].Backend.Unit() == r.Selected.Unit() {
				right++
			} else {
				wrong++
			}
		}
		if wrong == 0 {
			perfect++
		} else {
			t.Logf("%s: %d of %d ops elsewhere", x.name, wrong, len(x.records))
		}
	}
	share := func(n int) float64 { return float64(n) / float64(ops) }
	t.Logf("CPU or ANE: %d of %d ops right (%.1f %%), %d of %d texts without an error; always CPU %.1f %%, always ANE %.1f %%",
		right, ops, 100*share(right), perfect, len(texts), 100*share(ops-ane), 100*share(ane))
	require.GreaterOrEqual(t, share(right), 0.90)
}

// oracle: as above, each text with rates made of the other 45. What kept the engine from an op is not fitted: rules rest on the
// public record besides the texts.
func TestPlacementOfTextsLeftOut(t *testing.T) {
	texts := readTexts(t, shareddata.Cases(t, "coreml/miltext/analytics_*/*.mil"))
	all := fit(texts, "")
	const madeOf = 46 // texts
	for name, r := range shipped.rates {
		for b, x := range r {
			if got := all.rates[name][b]; x > 0 && got > 0 && name != multiplying && len(texts) == madeOf {
				require.InEpsilon(t, x, got, 2e-3, "%s on %s: the shipped rate is not that of the texts", name, Backend(b))
			}
		}
	}
	right, ops := 0, 0
	for _, x := range texts {
		p := predict(x.f, Options{}, fit(texts, x.name))
		for i, r := range x.records {
			ops++
			if p.Ops[i].Backend.Unit() == r.Selected.Unit() {
				right++
			}
		}
	}
	t.Logf("left out one by one: %d of %d ops right (%.1f %%)", right, ops, 100*float64(right)/float64(ops))
	require.GreaterOrEqual(t, float64(right), 0.90*float64(ops))
}

// fit makes rates of all texts but one: the median of what each family did per second. A family that only moves bytes where
// nothing else bounds it takes the other part from the ops that show it.
func fit(texts []text, without string) *prices {
	seen := map[family][backends][]float64{}
	linears := map[[2]int64][backends][]float64{}
	for _, x := range texts {
		s := scopeOf(x.f)
		for _, r := range x.records {
			if x.name == without || carries(r.Op.Type) {
				continue
			}
			parts := s.work(r.Op)
			last := parts[len(parts)-1]
			for b, seconds := range r.Seconds {
				if seconds == 0 || math.IsInf(seconds, 1) {
					continue
				}
				speed := last.amount / seconds
				if len(parts) > 1 && math.Abs(parts[0].amount/shipped.rates[moving][b]/seconds-1) < 1e-3 {
					continue // bound by its bytes
				}
				if last.family == linearFamily {
					w, _ := find(s.operands(r.Op), "weight")
					at := linears[[2]int64{w.typ.Shape[0], w.typ.Shape[1]}]
					at[b] = append(at[b], speed)
					linears[[2]int64{w.typ.Shape[0], w.typ.Shape[1]}] = at
					continue
				}
				at := seen[last.family]
				at[b] = append(at[b], speed)
				seen[last.family] = at
			}
		}
	}
	p := &prices{rates: map[family]rate{}}
	for name, at := range seen {
		p.rates[name] = medians(at)
	}
	for shape, at := range linears {
		p.linear = append(p.linear, linearRate{shape[0], shape[1], medians(at)})
	}
	return p
}

func medians(at [backends][]float64) (r rate) {
	for b, speeds := range at {
		if slices.Sort(speeds); len(speeds) > 0 {
			r[b] = speeds[len(speeds)/2]
		}
	}
	return r
}

// oracle: every refusal that the compiler gives a reason for has a rule, and the program alone shows the same rule.
func TestRefusalsAreNamedWithTheirRule(t *testing.T) { forTexts(t, refusalsAreNamed) }

func refusalsAreNamed(t *testing.T, texts []text) {
	named, same, missed, invented := map[Rule]int{}, 0, 0, 0
	for _, x := range texts {
		s, limits := scopeOf(x.f), Options{}.limits()
		for _, r := range x.records {
			message, got := r.Refusals["ane"], s.refuse(r.Op, limits)
			switch {
			case message == "" && got == nil:
				continue
			case message == "":
				invented++
				t.Logf("%s %s: refused by %s, and the compiler takes it", x.name, r.Op.Name(), got.Rule)
				continue
			}
			rule := RuleOf(message)
			require.NotEqual(t, RuleOther, rule, message)
			require.NotEmpty(t, rule.Source())
			named[rule]++
			if got != nil && got.Rule == rule {
				same++
			} else {
				missed++
				t.Logf("%s %s: %s; from the program alone %v", x.name, r.Op.Name(), message, got)
			}
		}
	}
	t.Logf("%v: %d refusals with their rule from the program alone, %d without, %d invented", named, same, missed, invented)
	require.GreaterOrEqual(t, float64(same), 0.9*float64(same+missed))
	require.LessOrEqual(t, float64(invented), 0.1*float64(same+missed))
}

// oracle: estimates made of the program against the compiler's.
func TestEstimatesAgainstTheCompilers(t *testing.T) { forTexts(t, estimatesAreClose) }

func estimatesAreClose(t *testing.T, texts []text) {
	close, all := 0, 0
	for _, x := range texts {
		s := scopeOf(x.f)
		for _, r := range x.records {
			got := s.seconds(r.Op, &shipped)
			for b := range got {
				if math.IsInf(r.Seconds[b], 1) || r.Seconds[b] == 0 {
					continue
				}
				all++
				if math.Abs(got[b]/r.Seconds[b]-1) < 0.01 {
					close++
				} else if r.Refusals["ane"] == "" {
					t.Logf("%s %s %s on %s: %.4g ms, compiler %.4g ms", x.name, r.Op.Type, r.Op.Name(), Backend(b), 1e3*got[b], 1e3*r.Seconds[b])
				}
			}
		}
	}
	t.Logf("%d of %d estimates within 1 %%", close, all)
	require.Greater(t, float64(close), 0.8*float64(all))
}
