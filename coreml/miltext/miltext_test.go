package miltext

import (
	"os"
	"strings"
	"testing"

	"anelab/coreml/mil"
	"anelab/internal/shareddata"
	"github.com/stretchr/testify/require"
)

func TestTmp(t *testing.T) {
	same, total := 0, 0
	for _, pat := range []string{"coreml/miltext/*/*.mil", "coreml/miltext/pairs/*/model.mil"} {
		for _, f := range shareddata.Cases(t, pat) {
			raw, _ := os.ReadFile(f)
			p, d, err := Parse(f, string(raw))
			require.NoError(t, err)
			total++
			if err := mil.Check(p); err != nil {
				t.Error(f, err)
			}
			var b strings.Builder
			require.NoError(t, Print(&b, p, d))
			if strings.TrimRight(b.String(), "\n") == strings.TrimRight(string(raw), "\n") {
				same++
			} else {
				x, y := strings.Split(b.String(), "\n"), strings.Split(string(raw), "\n")
				for i := range x {
					if i < len(y) && x[i] != y[i] {
						t.Log(f, "\n", x[i][:min(500, len(x[i]))], "\n", y[i][:min(500, len(y[i]))])
						break
					}
				}
			}
		}
	}
	t.Log(same, total)
	for _, f := range shareddata.Cases(t, "coreml/miltext/pairs/*.mlmodelc") {
		c, err := Open(f)
		require.NoError(t, err)
		t.Log(c.Description != nil, c.Program.SpecVersion)
	}
}
