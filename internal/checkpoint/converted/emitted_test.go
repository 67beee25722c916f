package converted_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/chunking"
	"anelab/chunking/emit"
	"anelab/coreml/mlpackage"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/checkpoint/converted"
	"anelab/internal/gemmatest"
	"anelab/internal/half"
	"anelab/quant"
)

// several is a model with two kv heads, no sharing, V = K on full layers and no per-layer inputs: the 31B shape.
func several() gemma4.Config {
	c := gemmatest.Config()
	c.NumKVSharedLayers, c.UseDoubleWideMLP, c.HiddenSizePerLayer = 0, false, 0
	c.NumKeyValueHeads, c.NumGlobalKVHeads, c.AttentionKEqV = 4, 2, true
	return c
}

// emitted writes the packages of a layout and returns their paths.
func emitted(t *testing.T, config gemma4.Config, src gemma4.Source, layout string, o emit.Options) []string {
	m, err := chunking.NewModel(config)
	require.NoError(t, err)
	l, err := chunking.Parse(layout, m)
	require.NoError(t, err)
	plan, err := l.Plan(m)
	require.NoError(t, err)
	chunks, err := emit.Emit(context.Background(), plan, src, o)
	require.NoError(t, err)
	var paths []string
	for _, c := range chunks {
		path := filepath.Join(t.TempDir(), c.Name+".mlpackage")
		require.NoError(t, mlpackage.Write(context.Background(), path, c.Package, nil))
		paths = append(paths, path)
	}
	return paths
}

// invariant: what our emitter writes is read back as it was, layer by layer; its graphs need none of the other rules.
func TestOwnPackagesReadBack(t *testing.T) {
	for name, c := range map[string]struct {
		config  gemma4.Config
		layout  string
		options emit.Options
	}{
		"shared":         {gemmatest.Config(), "@3way w=f16 context=32", emit.Options{}},
		"odd cuts":       {gemmatest.Config(), "L0 w=f16|L1-3 w=f16|L4 w=f16|L5-8 w=f16|L9+head w=f16 context=32", emit.Options{Prefill: []int{8}, Verify: 3}},
		"states":         {gemmatest.Config(), "@4way w=f16 context=32", emit.Options{Caches: emit.StateCaches}},
		"several heads":  {several(), "@2way w=f16 context=32", emit.Options{}},
		"head by itself": {gemmatest.Config(), "L0-9 w=f16|head w=f16 context=32", emit.Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			base := gemmatest.New(c.config, 3)
			s, err := converted.Open(c.config, base, emitted(t, c.config, base, c.layout, c.options)...)
			require.NoError(t, err)
			defer s.Close()
			require.Equal(t, converted.Choices{}, s.Choices)
			for _, name := range s.Names() {
				want, err := base.Tensor(name)
				require.NoError(t, err)
				got, err := s.Tensor(name)
				require.NoError(t, err)
				require.Equal(t, want.Shape, got.Shape, name)
				x, err := got.Floats()
				require.NoError(t, err)
				y, err := want.Floats()
				require.NoError(t, err)
				for i := range y {
					if name != "embed_tokens.weight" && name != "embed_tokens_per_layer.weight" {
						y[i] = half.RoundF16(y[i])
					}
				}
				require.Equal(t, y, x, name)
			}
			_, err = gemma4.Load(c.config, s, s.Arithmetic(0), gemma4.Options{})
			require.NoError(t, err)
		})
	}
}

// invariant: palettes are read back as palettes.
func TestOwnPalettesReadBack(t *testing.T) {
	config := gemmatest.Config()
	base := gemmatest.New(config, 3)
	s, err := converted.Open(config, base, emitted(t, config, base, "@4way w=int4 context=32", emit.Options{})...)
	require.NoError(t, err)
	defer s.Close()
	palettes := 0
	for _, name := range s.Weights() {
		if at, _ := s.Stored(name); !at.Compressed() {
			continue
		}
		m, err := s.Matrix(name)
		require.NoError(t, err)
		require.Equal(t, 4, m.Encoding().Bits, name)
		palettes++
	}
	require.NotZero(t, palettes)
}

var _ = quant.Int4G32
var _ = arith.Modes
