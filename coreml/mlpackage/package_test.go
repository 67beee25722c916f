package mlpackage

import (
	"testing"

	"anelab/internal/shareddata"
	"github.com/stretchr/testify/require"
)

func TestAll(t *testing.T) {
	n := 0
	for _, pat := range []string{"coreml/ops/*.mlpackage", "coreml/chunks*/*/*.mlpackage", "coreml/miltext/pairs/*.mlpackage"} {
		for _, p := range shareddata.Cases(t, pat) {
			pkg, err := Open(p)
			if err != nil {
				t.Errorf("%v", err)
				continue
			}
			n++
			require.NoError(t, pkg.Close())
		}
	}
	t.Log(n)
	for _, p := range shareddata.Cases(t, "coreml/corrupt/*.mlpackage") {
		_, err := Open(p)
		require.Error(t, err, p)
		t.Log(err)
	}
}
