package proof

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab"
	"anelab/chunking"
	"anelab/gemma4"
	"anelab/internal/checkpoint"
	"anelab/parity/golden"
	"anelab/quant"
)

const tiny = "testdata/golden/tiny-e2b/"

func recording(t *testing.T, name string) []byte {
	t.Helper()
	data, err := anelab.Files.ReadFile(tiny + name)
	require.NoError(t, err)
	return data
}

func parse(t *testing.T, name string, data []byte) *golden.File {
	t.Helper()
	f, err := golden.Parse(name, data)
	require.NoError(t, err)
	return f
}

// prove runs the small model in a mode against recordings.
func prove(t *testing.T, mode, layout string, goldens ...*golden.File) *Result {
	t.Helper()
	c, err := checkpoint.OpenFS(anelab.Files, tiny+"bf16")
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	m, err := chunking.NewModel(c.Config)
	require.NoError(t, err)
	l, err := chunking.Parse(layout, m)
	require.NoError(t, err)
	r, err := Run(context.Background(), &Subject{Checkpoint: c, Layout: l, Mode: mode, Goldens: goldens}, nil)
	require.NoError(t, err)
	return r
}

// change adds to one element of a float32 tensor of a safetensors file.
func change(t *testing.T, data []byte, tensor string, element int, by float32) []byte {
	t.Helper()
	n := binary.LittleEndian.Uint64(data)
	var header map[string]struct {
		Offsets []int `json:"data_offsets"`
	}
	require.NoError(t, json.Unmarshal(data[8:8+n], &header))
	require.Contains(t, header, tensor)
	out := append([]byte(nil), data...)
	at := out[8+int(n)+header[tensor].Offsets[0]+4*element:]
	binary.LittleEndian.PutUint32(at, math.Float32bits(math.Float32frombits(binary.LittleEndian.Uint32(at))+by))
	return out
}

// oracle: transformers 5.24.0, and that a single wrong element is found, named and placed.
func TestOneWrongElementIsFound(t *testing.T) {
	const name = "golden_bf16w-fp32.safetensors"
	data := recording(t, name)
	require.True(t, prove(t, "f32", "@3way", parse(t, name, data)).OK())

	r := prove(t, "f32", "@3way", parse(t, name, change(t, data, "T7.hidden.6", 5, 0.01)))
	require.False(t, r.OK())
	chunks, whole := r.Comparisons[0], r.Comparisons[1]
	require.True(t, chunks.OK(), "the chunks are not at fault")
	require.Equal(t, 1, whole.Partings)
	require.Equal(t, "T7", whole.First.Case)
	require.Equal(t, "hidden.6 [0,7)", whole.First.Tensor)
	require.Equal(t, "chunk 2", whole.First.Chunk, "L3-6 of the preset on ten layers")
	require.Equal(t, 5, whole.First.Err.FirstBad)
	for _, x := range whole.Tensors {
		require.Equal(t, x.Point != gemma4.PointHidden, x.OK, x.Point)
	}
}

// hand: the first exact mode where one step is too much.
func TestBF16HiddenStatesAreExact(t *testing.T) {
	const name = "golden_bf16.safetensors"
	data := recording(t, name)
	require.True(t, prove(t, "hf-bf16", "@2way", parse(t, name, data)).OK())
	r := prove(t, "hf-bf16", "@2way", parse(t, name, change(t, data, "T1.hidden.9", 0, 1e-6)))
	require.False(t, r.OK())
	require.Equal(t, "hidden.9 [0,1)", r.Comparisons[1].First.Tensor)
}

func TestLongPromptsAreImported(t *testing.T) { // hand
	c, err := checkpoint.OpenFS(anelab.Files, tiny+"bf16")
	require.NoError(t, err)
	defer c.Close()
	m, err := chunking.NewModel(c.Config)
	require.NoError(t, err)
	l, ok := m.Preset("@4way")
	require.True(t, ok)
	r, err := Run(context.Background(), &Subject{Checkpoint: c, Layout: l, Mode: "ane", Tokens: longPrompt + 3}, nil)
	require.NoError(t, err)
	require.True(t, r.OK())
	require.Equal(t, 1, r.Imported)
	require.Equal(t, longPrompt+3+madeUpFollow, r.Plan.Context, "compiled for what the case needs")
	require.NotEmpty(t, r.Comparisons[1].Target.Information, "the distance from f32 is no verdict")
}

func TestTokensAndLoudness(t *testing.T) { // hand
	require.Equal(t, &Tokens{Count: 3, Equal: 3}, compareTokens([]int{5, 6, 7}, []int{5, 6, 7}))
	require.Equal(t, &Tokens{Count: 3, Equal: 2, First: "token 1 is 9, want 6"}, compareTokens([]int{5, 9, 7}, []int{5, 6, 7}))
	require.Equal(t, &Tokens{Count: 3, Equal: 1, First: "only 1 tokens"}, compareTokens([]int{5}, []int{5, 6, 7}))
	c := Comparison{Taps: 1, Tokens: &Tokens{Count: 2, Equal: 1}}
	require.False(t, c.OK())
	c.Target.Information = "no target"
	require.True(t, c.OK())
	require.False(t, (&Comparison{}).OK(), "nothing in common is no agreement")
	require.Equal(t, []float32{5, 0}, appendRMS(nil, []float32{5, -5, 0, 0}, 2))
}

func TestTargets(t *testing.T) { // hand: goldens' README §3
	passes := parse(t, "golden_bf16.safetensors", recording(t, "golden_bf16.safetensors"))
	decode := parse(t, "decode_bf16.safetensors", recording(t, "decode_bf16.safetensors"))
	wide := parse(t, "golden_bf16w-fp32.safetensors", recording(t, "golden_bf16w-fp32.safetensors"))
	text, err := anelab.Files.ReadFile("testdata/golden/formula/e2b-10L_bf16_T24.safetensors")
	require.NoError(t, err)
	formula := parse(t, "formula", text)

	require.True(t, targetOf(passes, "hf-bf16").Tolerances.For(gemma4.PointHidden).Exact())
	require.Equal(t, 0.5, targetOf(decode, "hf-bf16").Tolerances.For(gemma4.PointLogits).Abs)
	require.Equal(t, 5e-5, targetOf(wide, "f32").Tolerances.For(gemma4.PointHidden).PeakRel)
	require.Equal(t, 1e-6, targetOf(wide, "f32").Tolerances.For(gemma4.PointEmbeds).PeakRel)
	require.Contains(t, targetOf(formula, "hf-bf16").Information, "0.3%")
	require.NotEmpty(t, targetOf(wide, "ane").Information)
	require.NotEmpty(t, targetOf(passes, "f32").Information)

	require.True(t, Wanted(passes, quant.BF16, "hf-bf16"))
	require.False(t, Wanted(passes, quant.F32, "hf-bf16"))
	require.True(t, Wanted(wide, quant.BF16, "f32"))
	require.False(t, Wanted(wide, quant.F16, "f32"))
}
