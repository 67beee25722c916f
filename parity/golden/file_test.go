package golden

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/gemma4"
	"anelab/internal/checkpoint/safetensors"
	"anelab/internal/format"
	"anelab/internal/shareddata"
	"anelab/quant"
)

// tiny is the folder of the small model.
const tiny = "../../testdata/golden/tiny-e2b"

func open(t *testing.T, path string) *File {
	t.Helper()
	f, err := Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func TestOpenPasses(t *testing.T) { // oracle: goldens' README
	f := open(t, tiny+"/golden_fp32.safetensors")
	require.Equal(t, Passes, f.Kind)
	require.Equal(t, Run{Name: "fp32", Weights: "fp32", Compute: "torch.float32"}, f.Run)
	var names []string
	for _, c := range f.Cases() {
		names = append(names, c.Name)
		require.Empty(t, c.Tokens)
	}
	require.Equal(t, []string{"T1", "T7", "T8", "T21"}, names)
	c := f.Cases()[2]
	require.Len(t, c.Prompt, 8)
	require.Contains(t, c.Prompt, 0)
	require.Contains(t, c.Prompt, 319, "the last id gets no special treatment")
	x, shape, ok := c.Tensor("probs.4")
	require.True(t, ok)
	require.Equal(t, []int{4, 8, 8}, shape)
	require.InDelta(t, 1, x[0], 1e-6, "the first token sees itself")
	require.Zero(t, x[1])
	_, _, ok = c.Tensor("probs.1")
	require.False(t, ok, "a layer that was not recorded")
	require.Len(t, f.InvFreq("sliding"), 8)
	require.Len(t, f.InvFreq("full"), 16)
	require.Nil(t, f.InvFreq("half"))
}

func TestOpenDecodeAndFormula(t *testing.T) { // oracle: goldens' README
	f := open(t, tiny+"/decode_bf16.safetensors")
	require.Equal(t, Decode, f.Kind)
	c := f.Cases()[0]
	require.Len(t, c.Prompt, 21)
	require.Len(t, c.Tokens, 24)
	require.Len(t, c.ParityCase().Follow, 23, "the last token is not fed")

	f = open(t, "../../testdata/golden/formula/e2b-10L_fp32_T24.safetensors")
	require.Equal(t, Formula, f.Kind)
	require.Equal(t, "formula seed golden-10L", f.Run.Weights)
	require.Len(t, f.Cases()[0].Prompt, 24)
	require.Equal(t, []int{1219, 1708, 910, 799, 1490, 1697, 88, 1230}, f.Cases()[0].Tokens, "as in e2b-10L.json")
}

// TestEveryGoldenOpens holds every file of the shared data against the names and shapes that this package knows.
func TestEveryGoldenOpens(t *testing.T) { // invariant
	paths := shareddata.Cases(t, "golden/*/*.safetensors")
	for _, path := range paths {
		f := open(t, path)
		require.NotEmpty(t, f.Cases(), path)
		for _, c := range f.Cases() {
			require.NotEmpty(t, c.tracks(), "%s %s", path, c.Name)
		}
	}
}

// craft writes a Passes file of one case T2 over a vocabulary of 3, changed by the caller.
func craft(t *testing.T, change func(tensors map[string]quant.Tensor, metadata map[string]string)) string {
	t.Helper()
	tensor := func(name string, d quant.DType, shape ...int) quant.Tensor {
		x := quant.Tensor{Name: name, DType: d, Shape: shape}
		x.Data = make([]byte, x.Len()*d.Size())
		return x
	}
	tensors := map[string]quant.Tensor{
		"T2.input_ids": tensor("T2.input_ids", quant.I64, 2),
		"T2.logits":    tensor("T2.logits", quant.F32, 2, 3),
		"T2.embeds":    tensor("T2.embeds", quant.F32, 2, 5),
		"T2.hidden.0":  tensor("T2.hidden.0", quant.F32, 2, 5),
		"T2.probs.0":   tensor("T2.probs.0", quant.F32, 7, 2, 2),
	}
	metadata := map[string]string{"golden": `{"run": "fp32", "weights": "fp32", "compute": "torch.float32"}`}
	change(tensors, metadata)
	var list []quant.Tensor
	for name, x := range tensors {
		x.Name = name
		list = append(list, x)
	}
	path := filepath.Join(t.TempDir(), "golden.safetensors")
	require.NoError(t, safetensors.Write(path, list, metadata))
	return path
}

func TestOpenRefuses(t *testing.T) { // hand
	type tensors = map[string]quant.Tensor
	rename := func(from, to string) func(tensors, map[string]string) {
		return func(x tensors, _ map[string]string) { x[to] = x[from]; delete(x, from) }
	}
	reshape := func(name string, shape ...int) func(tensors, map[string]string) {
		return func(x tensors, _ map[string]string) {
			e := x[name]
			e.Shape = shape
			e.Data = make([]byte, e.Len()*e.DType.Size())
			x[name] = e
		}
	}
	for name, c := range map[string]struct {
		change func(tensors, map[string]string)
		want   string
	}{
		"misspelt tensor":         {rename("T2.embeds", "T2.embedds"), `unknown tensor "embedds", want a tensor of passes; did you mean "T1.embeds"?`},
		"no case":                 {rename("T2.embeds", "embeds"), `unknown tensor "embeds"`},
		"case of length 0":        {rename("T2.embeds", "T0.embeds"), `unknown tensor "T0"`},
		"layer missing":           {rename("T2.hidden.0", "T2.hidden"), `"hidden" with suffix ""`},
		"layer twice":             {rename("T2.hidden.0", "T2.hidden.00"), `"hidden" with suffix "00"`},
		"negative layer":          {rename("T2.hidden.0", "T2.hidden.-1"), `"hidden" with suffix "-1"`},
		"layer of a layerless":    {rename("T2.embeds", "T2.embeds.0"), `"embeds" with suffix "0"`},
		"rope of another type":    {rename("T2.embeds", "T2.rope_cos.local"), `"rope_cos" with suffix "local"`},
		"too few axes":            {reshape("T2.embeds", 10), "shape [10], want [T D]"},
		"PAR-03 rows and columns": {reshape("T2.hidden.0", 5, 2), "shape [5 2], want [T D] with T = 2"},
		"another width":           {reshape("T2.hidden.0", 2, 4), "shape [2 4], want [T D] with D = 5"},
		"empty":                   {reshape("T2.logits", 2, 0), "shape [2 0]"},
		"length not as named": {func(x tensors, _ map[string]string) {
			reshape("T2.input_ids", 3)(x, nil)
			rename("T2.input_ids", "T3.input_ids")(x, nil)
		}, "no "},
		"ids as floats": {func(x tensors, _ map[string]string) {
			e := x["T2.input_ids"]
			e.DType = quant.F64
			x["T2.input_ids"] = e
		}, "f64, want i64"},
		"floats as ids": {func(x tensors, _ map[string]string) {
			e := x["T2.embeds"]
			e.DType = quant.I32
			x["T2.embeds"] = e
		}, "i32, want a floating-point type"},
		"id above the vocabulary": {func(x tensors, _ map[string]string) { x["T2.input_ids"].Data[8] = 3 }, "id 3 at 1, want 0 to 2"},
		"no prompt":               {func(x tensors, _ map[string]string) { delete(x, "T2.input_ids") }, "T2: no input_ids"},
		"no logits":               {func(x tensors, _ map[string]string) { delete(x, "T2.logits") }, "T2: no logits"},
		"no metadata":             {func(_ tensors, m map[string]string) { delete(m, "golden") }, `no "golden"`},
		"metadata is no JSON":     {func(_ tensors, m map[string]string) { m["golden"] = "fp32" }, "__metadata__.golden"},
		"metadata without run":    {func(_ tensors, m map[string]string) { m["golden"] = "{}" }, "want weights and compute"},
		"nothing":                 {func(x tensors, _ map[string]string) { clear(x) }, "no case"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(craft(t, c.change))
			var fault *format.Error
			require.ErrorAs(t, err, &fault)
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := Open(craft(t, func(tensors, map[string]string) {}))
	require.NoError(t, err, "unchanged, it opens")
}

func TestKVS08SharedLayersUsedTheirDonors(t *testing.T) { // oracle: the goldens; hand: a planted fault
	layers := layersOf(t, tiny+"/bf16/config.json")
	for _, run := range []string{"fp32", "bf16", "bf16w-fp32"} {
		f := open(t, tiny+"/golden_"+run+".safetensors")
		n, err := f.CheckSharing(layers)
		require.NoError(t, err)
		require.Equal(t, 4*3*2, n, "in each of four cases k and v of layers 5 and 8 (donor 3) and of layer 9 (donor 4)")
	}
}

func layersOf(t *testing.T, path string) []gemma4.Layer {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	c, err := gemma4.ParseConfig(path, data)
	require.NoError(t, err)
	layers, err := c.Layers()
	require.NoError(t, err)
	return layers
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"))
	head := `{"__metadata__":{"golden":"{\"weights\":\"w\",\"compute\":\"c\"}"},"T1.input_ids":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},` +
		`"T1.logits":{"dtype":"F32","shape":[1,2],"data_offsets":[8,16]}}`
	f.Add(append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...), make([]byte, 16)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("fuzz", data)
		if err != nil {
			return
		}
		for _, c := range file.Cases() { // whatever opens can be read and played back
			for _, key := range c.Keys() {
				values, _, ok := c.Tensor(key)
				require.True(t, ok)
				require.NotEmpty(t, values)
			}
			for _, err := range (Backend{c}).Run(t.Context(), c.ParityCase()) {
				require.NoError(t, err)
			}
		}
	})
}
