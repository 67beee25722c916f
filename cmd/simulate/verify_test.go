package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab"
	"anelab/cmd/simulate/internal/console"
)

// recording is a golden of the small model with its logits open to changes.
type recording struct {
	file   []byte
	values []byte // of T21.logits, inside file
	width  int
}

func open(t *testing.T) recording {
	t.Helper()
	data, err := anelab.Files.ReadFile("testdata/golden/tiny-e2b/golden_bf16w-fp32.safetensors")
	require.NoError(t, err)
	n := binary.LittleEndian.Uint64(data)
	var header map[string]struct {
		Shape   []int
		Offsets []int `json:"data_offsets"`
	}
	require.NoError(t, json.Unmarshal(data[8:8+n], &header))
	logits := header["T21.logits"]
	body := bytes.Clone(data)
	return recording{body, body[8+int(n)+logits.Offsets[0] : 8+int(n)+logits.Offsets[1]], logits.Shape[len(logits.Shape)-1]}
}

func (r *recording) at(i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(r.values[4*i:]))
}

func (r *recording) set(i int, v float32) {
	binary.LittleEndian.PutUint32(r.values[4*i:], math.Float32bits(v))
}

// rival finds a row whose second choice has the lower index, and both choices.
func (r *recording) rival(t *testing.T) (first, second int) {
	t.Helper()
	for lo := 0; 4*lo < len(r.values); lo += r.width {
		first, second = lo, -1
		for i := lo + 1; i < lo+r.width; i++ {
			switch {
			case r.at(i) > r.at(first):
				first, second = i, first
			case second < 0 || r.at(i) > r.at(second):
				second = i
			}
		}
		if second < first {
			return first, second
		}
	}
	require.Fail(t, "no such row")
	return 0, 0
}

// verify holds the small model against the recording and returns what is printed about choices.
func (r *recording) verify(t *testing.T, code int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "golden.safetensors")
	require.NoError(t, os.WriteFile(path, r.file, 0o644))
	var out bytes.Buffer
	c := &console.Console{In: strings.NewReader(""), Out: &out, Err: &bytes.Buffer{}, Getenv: func(string) string { return "" }}
	require.Equal(t, code, run(c, []string{"verify", "--mode", "f32", "--golden", path}))
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "argmax of logits: ") {
			return line
		}
	}
	return ""
}

// oracle: transformers' logits; hand: one of its rows changed so that two tokens are equal, then so that the other leads by 1.
func TestPAR05VerifyShowsTiesAndMargins(t *testing.T) {
	r := open(t)
	first, second := r.rival(t)
	top := r.at(first)
	require.Regexp(t, `^argmax of logits: 37 of 37 rows agree, 0 ties; least margin 0\.\d+\n`, r.verify(t, exitDone))

	r.set(second, top) // the lower index wins among equals: another choice, by nothing
	require.Regexp(t, `^argmax of logits: 36 of 37 rows agree, 1 tie; least margin 0\n`, r.verify(t, exitNo))

	r.set(second, top+1)
	require.Regexp(t, `^argmax of logits: 36 of 37 rows agree, 0 ties; least margin \S+; first\n`, r.verify(t, exitNo))
}
