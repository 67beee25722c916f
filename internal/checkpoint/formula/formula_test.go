package formula

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// vector is one entry of formula_vectors.json (oracle: make_goldens.py, Python integers and numpy).
type vector struct {
	Seed, Name string
	Shape      []int
	C, A       float64
	Hash       string `json:"fnv1a64"`
	Index      []int
	BF16       []string
}

func vectors(t *testing.T) []vector {
	t.Helper()
	data, err := os.ReadFile("../../../testdata/golden/formula_vectors.json")
	require.NoError(t, err)
	var v []vector
	require.NoError(t, json.Unmarshal(data, &v))
	require.Len(t, v, 26)
	return v
}

// sums are XOR and sum of the bits of whole tensors (oracle: golden/formula.md, last table).
var sums = map[string]struct{ xor, sum uint64 }{
	"embed_tokens.weight":                        {0x8e67, 100132316257},
	"layers.0.layer_scalar":                      {0x3f37, 16183},
	"layers.0.self_attn.q_proj.weight":           {0x8fd3, 100272131805},
	"layers.0.self_attn.q_norm.weight":           {0x0075, 4112045},
	"layers.0.self_attn.k_norm.weight":           {0x01e8, 4113022},
	"layers.0.self_attn.k_proj.weight":           {0x8a55, 12528886149},
	"layers.0.self_attn.v_proj.weight":           {0x8f7e, 12520401910},
	"layers.0.self_attn.o_proj.weight":           {0x853f, 100178466207},
	"layers.0.mlp.gate_proj.weight":              {0x0ea0, 300747537500},
	"layers.0.mlp.up_proj.weight":                {0x88e1, 300794232607},
	"layers.0.mlp.down_proj.weight":              {0x0749, 299548234427},
	"layers.0.input_layernorm.weight":            {0x009f, 24946399},
	"layers.0.post_attention_layernorm.weight":   {0x000c, 24940742},
	"layers.0.pre_feedforward_layernorm.weight":  {0x0081, 24939161},
	"layers.0.post_feedforward_layernorm.weight": {0x0001, 24944667},
	"layers.0.per_layer_input_gate.weight":       {0x0669, 12530524325},
	"layers.0.per_layer_projection.weight":       {0x043c, 12603930690},
	"layers.0.post_per_layer_input_norm.weight":  {0x00fb, 24946253},
	"layers.4.self_attn.q_norm.weight":           {0x0024, 8225686},
	"layers.4.self_attn.k_norm.weight":           {0x0005, 8225327},
	"layers.4.self_attn.o_proj.weight":           {0x88ae, 200028673212},
	"layers.5.mlp.down_proj.weight":              {0x8057, 597964204731},
	"norm.weight":                                {0x003c, 25460772},
	"embed_tokens_per_layer.weight":              {0x8a43, 167927715349},
	"per_layer_model_projection.weight":          {0x842a, 125347526280},
	"per_layer_projection_norm.weight":           {0x00d7, 4158383},
}

func TestVectorsAndSums(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			require.Equal(t, v.Hash, fmt.Sprintf("%016x", state(v.Seed, v.Name)))
			s, ok := scaleOf(v.Name, v.Shape)
			require.True(t, ok)
			require.Equal(t, scale{v.C, v.A}, s)
			w, err := New("e2b-10L", v.Seed, map[string][]int{v.Name: v.Shape})
			require.NoError(t, err)
			x, err := w.Tensor(v.Name)
			require.NoError(t, err)
			require.Equal(t, v.Shape, x.Shape)
			require.NotEmpty(t, v.Index)
			for i, at := range v.Index {
				require.Equal(t, v.BF16[i], fmt.Sprintf("%04x", binary.LittleEndian.Uint16(x.Data[2*at:])), "index %d", at)
			}
			want, ok := sums[v.Name]
			require.True(t, ok)
			got := want
			got.xor, got.sum = 0, 0
			for i := 0; i < len(x.Data); i += 2 {
				b := uint64(binary.LittleEndian.Uint16(x.Data[i:]))
				got.xor, got.sum = got.xor^b, got.sum+b
			}
			require.Equal(t, want, got)
		})
	}
}

func TestBlocksEqualOneRun(t *testing.T) { // invariant: a tensor does not depend on how it is cut
	const n = 2*block + 7
	whole, cut := make([]byte, 2*n), make([]byte, 2*n)
	fill(whole, state("s", "t"), scale{1, 0.5})
	generate(cut, state("s", "t"), scale{1, 0.5})
	require.Equal(t, whole, cut)
}

func TestUnknownTensors(t *testing.T) {
	_, err := New("x", "s", map[string][]int{"layers.0.router.proj.weight": {10, 44}})
	require.ErrorContains(t, err, "formula:x: layers.0.router.proj.weight")
	w, err := New("x", "s", map[string][]int{"norm.weight": {3}})
	require.NoError(t, err)
	require.False(t, w.Has("layers.0.layer_scalar"))
	_, err = w.Tensor("layers.0.layer_scalar")
	require.ErrorContains(t, err, "no such tensor")
	_, ok := scaleOf("xnorm.weight", []int{3})
	require.False(t, ok, "suffixes end at a dot")
}

func BenchmarkGenerate(b *testing.B) {
	dst := make([]byte, 2*block*8)
	b.SetBytes(int64(len(dst) / 2)) // weights
	for b.Loop() {
		generate(dst, 1, scale{0, 0.25})
	}
}
