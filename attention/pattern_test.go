package attention

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func writePattern(t *testing.T, table, config string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, patternFile), []byte(table), 0o600))
	if config != "" {
		require.NoError(t, os.WriteFile(filepath.Join(dir, patternConfig), []byte(config), 0o600))
	}
	return dir
}

const trained = `{"sink_size": 4, "recent_size": 12, "lr": 0.02}`

// model has layers 0 to 4, of which 2 and 4 are full, with 4 query heads over so many KV heads.
func model(kvHeads int) []PatternLayer {
	all := make([]PatternLayer, 5)
	for i := range all {
		all[i] = PatternLayer{Index: i, Heads: 4, KVHeads: kvHeads, Full: i == 2 || i == 4}
	}
	return all
}

func TestPatternGates(t *testing.T) { // hand: ranks of the values of the full layers; numpy's quantile interpolates between ranks
	for _, c := range []struct {
		name, table string
		kvHeads     int
		share       float64
		want        map[int]string
	}{
		{"a row per layer, a column per KV head", "0\t0\n0\t0\n0.9\t0.2\n0\t0\n0.4\t0.8\n", 2, 0.5, map[int]string{2: "duokv:4+12:10", 4: "duokv:4+12:01"}},
		{"a row per full layer", "9e-1\t2e-1\n4e-1\t8e-1\n", 2, 0.5, map[int]string{2: "duokv:4+12:10", 4: "duokv:4+12:01"}},
		{"half of 3 intervals is rank 1.5: 2 stream", "0.9\t0.2\n0.4\t0.8\n", 2, 0.4, map[int]string{2: "duokv:4+12:10", 4: "duokv:4+12:01"}},
		{"a third: rank 1, and 1 is full", "0.9\t0.2\n0.4\t0.8\n", 2, 1.0 / 3, map[int]string{2: "duokv:4+12:10", 4: "full"}},
		{"none", "0.9\t0.2\n0.4\t0.8\n", 2, 0, map[int]string{2: "full", 4: "full"}},
		{"all", "0.9\t0.2\n0.4\t0.8\n", 2, 1, map[int]string{2: "stream:4+12", 4: "stream:4+12"}},
		{"a tie goes to the later head", "1.0001\t1\n1\t1\n", 2, 0.3, map[int]string{2: "full", 4: "duokv:4+12:10"}},
		{"one KV head: a whole layer or nothing", "0.3\n0.7\n", 1, 0.5, map[int]string{2: "stream:4+12", 4: "full"}},
		{"query heads only mask", "1\t0\t0\t1\n0\t1\t1\t1\n", 1, 0.4, map[int]string{2: "duo:4+12:1001", 4: "duo:4+12:0111"}},
	} {
		p, err := OpenPattern(writePattern(t, c.table, trained))
		require.NoError(t, err, c.name)
		got, err := p.Policies(model(c.kvHeads), c.share)
		require.NoError(t, err, c.name)
		texts := map[int]string{}
		for l, policy := range got {
			texts[l] = policy.String()
			require.NoError(t, Fit(policy, 4, c.kvHeads))
		}
		require.Equal(t, c.want, texts, c.name)
	}
}

func TestPatternRefusals(t *testing.T) {
	for _, c := range []struct{ table, config, want string }{
		{"0.5\n", trained, "another model: simulate heads"}, // one row for a model of five layers, two of them full
		{"1\t1\t1\n1\t1\t1\n", trained, "3 columns, want 2, one for each KV head, or 4"},
		{"", trained, "no rows"},
		{"1\t1\n1\n", trained, "line 2: 1 numbers, want 2"},
		{"1\tx\n", trained, "\"x\", want a number"},
		{"1\tNaN\n", trained, "want a number"},
		{"1\t1\n1\t1\n", "", "no such file"},
		{"1\t1\n1\t1\n", "{", "unexpected end"},
		{"1\t1\n1\t1\n", "{}", "want at least 0 and 1"},
	} {
		p, err := OpenPattern(writePattern(t, c.table, c.config))
		if err == nil {
			_, err = p.Policies(model(2), 0.5)
		}
		require.ErrorContains(t, err, c.want, c.table)
	}
	_, err := OpenPattern(filepath.Join(t.TempDir(), "none"))
	require.ErrorContains(t, err, "a pattern is full_attention_heads.tsv")
}

func TestATT07OrderOfHeads(t *testing.T) { // hand: pattern [0,1,0,1], width 2: rows 2,3,6,7 then 0,1,4,5
	require.Equal(t, []int{1, 3, 0, 2}, Order("0101"))
	var rows []int
	for _, h := range Order("0101") {
		rows = append(rows, 2*h, 2*h+1)
	}
	require.Equal(t, []int{2, 3, 6, 7, 0, 1, 4, 5}, rows)
}

func FuzzParsePattern(f *testing.F) {
	for _, seed := range []string{"1\t0.5\n0\t1\n", "", "\n\n", "1e400", "-0.1\t1.2", strings.Repeat("1\t", 50)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, table []byte) {
		p, err := ParsePattern("fuzz", table)
		if err != nil {
			return
		}
		for _, row := range p.Values {
			require.Len(t, row, len(p.Values[0]))
			for _, v := range row {
				require.True(t, v >= 0 && v <= 1)
			}
		}
	})
}
