package chunking

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/gemma4"
	"anelab/internal/shareddata"
	"anelab/quant"
)

// tensorShapes reads the shapes of a fixture: CASE/in/NAME and CASE/out/NAME.
func tensorShapes(t *testing.T, path string) map[string][]int {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var header map[string]struct {
		Shape []int `json:"shape"`
	}
	require.NoError(t, json.Unmarshal(data[8:8+binary.LittleEndian.Uint64(data)], &header))
	shapes := map[string][]int{}
	for name, tensor := range header {
		shapes[name] = tensor.Shape
	}
	return shapes
}

// conformanceModel is the model behind the traced chunks.
func conformanceModel(t *testing.T, dir string) *Model {
	t.Helper()
	path := filepath.Join(dir, "config.json")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	cfg, err := gemma4.ParseConfig(path, data)
	require.NoError(t, err)
	m, err := NewModel(cfg)
	require.NoError(t, err)
	return m
}

// Which preset a folder of traced chunks was made from, and its cases by number of query tokens.
var traced = map[string]struct {
	preset string
	tokens map[string]int
}{
	"3chunk": {"@3way", map[string]int{"s0": 1, "s13": 1}},
	"4chunk": {"@4way", map[string]int{"s0": 1, "s13": 1}},
	"verify": {"@4way", map[string]int{"q1": 1, "q3": 3}},
}

// oracle: chunks that coremltools converted from CoreML-LLM's own modules, decode and verify.
func TestPortsOfTracedChunks(t *testing.T) {
	dir := shareddata.Dir(t, "coreml/chunks")
	m := conformanceModel(t, dir)
	compared := 0
	for _, path := range shareddata.Cases(t, "coreml/chunks/*_*/chunk*.safetensors") {
		folder, _, _ := strings.Cut(filepath.Base(filepath.Dir(path)), "_")
		from, ok := traced[folder]
		if !ok {
			continue // stateful and prefill chunks have other ports
		}
		l, ok := m.Preset(from.preset)
		require.True(t, ok)
		l.Context = 32
		shapes := tensorShapes(t, path)
		chunk := int(strings.TrimPrefix(filepath.Base(path), "chunk")[0] - '1')
		for name, tokens := range from.tokens {
			l.QueryTokens = tokens
			c := planOf(t, m, l).Chunks[chunk]
			require.Equal(t, shapesOf(shapes, name+"/in/"), portShapes(c.Inputs), "%s %s", path, name)
			require.Equal(t, shapesOf(shapes, name+"/out/"), portShapes(c.Outputs), "%s %s", path, name)
			compared++
		}
	}
	t.Logf("%d graphs compared", compared)
	require.NotZero(t, compared)
}

func shapesOf(all map[string][]int, prefix string) map[string][]int {
	some := map[string][]int{}
	for name, shape := range all {
		if port, ok := strings.CutPrefix(name, prefix); ok {
			some[port] = shape
		}
	}
	return some
}

func portShapes(ports []Port) map[string][]int {
	shapes := map[string][]int{}
	for _, p := range ports {
		shapes[p.Name] = p.Shape
	}
	return shapes
}

// oracle: the weight files that coremltools wrote. They hold what the plan counts and, beyond it, 64-byte blob headers with
// alignment and small constants: never less, and little more per op.
func TestWeightBytesOfTracedChunks(t *testing.T) {
	dir := shareddata.Dir(t, "coreml/chunks")
	m := conformanceModel(t, dir)
	for folder, weights := range map[string]quant.Encoding{"4chunk_w4": quant.Int4G32, "4chunk_fp16": quant.DenseF16} {
		l, ok := m.Preset("@4way")
		require.True(t, ok)
		l.Context = 32
		for i := range l.Cuts {
			l.Cuts[i].Weights = weights
		}
		for i, c := range planOf(t, m, l).Chunks {
			path := filepath.Join(dir, folder, "chunk"+string(rune('1'+i))+".mlpackage", "Data", "com.apple.CoreML", "weights", "weight.bin")
			info, err := os.Stat(path)
			require.NoError(t, err)
			extra := info.Size() - c.Totals.WeightBytes
			t.Logf("%s chunk %d: file %d, plan %d, %d ops", folder, i+1, info.Size(), c.Totals.WeightBytes, len(c.Ops))
			require.Positive(t, extra, path)
			require.Less(t, extra, int64(len(c.Ops))*512, path)
		}
	}
}
