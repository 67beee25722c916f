package anesim

import (
	"bytes"
	"encoding/csv"
	"testing"

	"github.com/stretchr/testify/require"
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

// oracle: evidence that claims to be a row of limits.csv is one, word for word.
func TestLimitsQuoteTheirEvidence(t *testing.T) {
	records, err := csv.NewReader(bytes.NewReader(measuredFile(t, "limits.csv"))).ReadAll()
	require.NoError(t, err)
	rows := map[Evidenced]bool{}
	for _, r := range records[1:] {
		rows[Evidenced{Limit: r[0], Condition: r[1], Device: r[2], Outcome: r[3], Kind: r[4], Source: r[5]}] = true
	}
	seen := map[string]bool{}
	for _, l := range limits {
		require.False(t, seen[l.id], "%s twice", l.id)
		seen[l.id] = true
		if l.evidence.Limit != "dimension" {
			require.True(t, rows[l.evidence], "%s: no such row: %+v", l.id, l.evidence)
		}
	}
}
