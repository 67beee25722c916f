package mlpackage

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anelab/coreml/mil"
	"anelab/coreml/mil/blob"
	"anelab/internal/shareddata"
	"github.com/stretchr/testify/require"
)

func TestAll(t *testing.T) {
	n := 0
	for _, pat := range []string{"coreml/ops/*.mlpackage", "coreml/chunks*/*/*.mlpackage", "coreml/miltext/pairs/*.mlpackage"} {
		for _, p := range shareddata.Cases(t, pat) {
			seen = map[*byte]mil.Data{}
			pkg, err := Open(p)
			if err != nil {
				t.Errorf("%v", err)
				continue
			}
			out := filepath.Join(t.TempDir(), "x.mlpackage")
			require.NoError(t, Write(context.Background(), out, pkg, nil))
			w := "Data/com.apple.CoreML/weights/weight.bin"
			a, _ := os.ReadFile(filepath.Join(p, w))
			b, _ := os.ReadFile(filepath.Join(out, w))
			require.True(t, bytes.Equal(a, b), p)
			m := "Data/com.apple.CoreML/model.mlmodel"
			x, _ := os.ReadFile(filepath.Join(p, m))
			y, _ := os.ReadFile(filepath.Join(out, m))
			same := bytes.Equal(x, y)
			for _, fn := range pkg.Program.Functions {
				for op := range fn.Body.All() {
					for _, v := range op.Values() {
						if b := v.Blob(); b != nil {
							raw, _ := b.Bytes()
							_, e, _ := blob.Origin(b)
							_ = e
							v.Content = shared(raw)
						}
					}
				}
			}
			_ = mil.Bool
			require.NoError(t, Write(context.Background(), out, pkg, nil))
			c, _ := os.ReadFile(filepath.Join(out, w))
			if !same || len(x) != len(y) || !bytes.Equal(a, c) {
				t.Log(strings.TrimPrefix(p, "/work/shared/coreml/"), "model same", same, len(x), len(y), "rewritten same", bytes.Equal(a, c), len(a), len(c))
			}
			n++
			require.NoError(t, pkg.Close())
		}
	}
	t.Log(n)
}

var seen = map[*byte]mil.Data{}

type data struct{ blob.Memory }

func shared(raw []byte) mil.Data {
	if seen[&raw[0]] == nil {
		seen[&raw[0]] = &data{blob.Memory(raw)}
	}
	return seen[&raw[0]]
}
