package census

import (
	"path/filepath"
	"strings"
	"testing"

	"anelab/coreml/mil"
	"anelab/coreml/mlpackage"
	"anelab/internal/shareddata"

	"github.com/stretchr/testify/require"
)

func fixture(t *testing.T, name string) *mil.Program {
	p, err := mlpackage.Open(filepath.Join(shareddata.ModuleRoot(t), "testdata", "coreml", "ops", name+".mlpackage"))
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	return p.Program
}

// hand: shapes and bytes as the packages' makers chose them (testdata/README.md).
func TestWeightsOfFixtures(t *testing.T) {
	old := Weights(fixture(t, "ios16_lut_w4").Functions[0])
	require.Len(t, old, 1)
	require.Equal(t, "palette4", old[0].Encoding())
	require.Equal(t, int64(24*31), old[0].Elements())
	require.Equal(t, int64(24*31/2+16*2), old[0].Bytes())
	require.Nil(t, old[0].Blocks)
	require.Equal(t, "conv", old[0].Readers[0].Type)

	both := fixture(t, "multifunction")
	all := append(Weights(both.Functions[0]), Weights(both.Functions[1])...)
	require.Equal(t, []Share{{Encoding: "fp16", Weights: 2, Elements: 48 * 64, Bytes: 2 * 48 * 64}}, Tally(all))
	require.Equal(t, []Count{{"conv", 1}, {"gelu", 1}}, Ops(both.Function("prefill_b4")))
}

// hand: a table that another op makes has two stored parts more; only what the conv reads is a weight.
func TestChainsAreOneWeight(t *testing.T) {
	data := func(d mil.DType, shape ...int64) *mil.Value {
		v := &mil.Value{Type: mil.TensorOf(d, shape...)}
		n, _ := v.Type.ByteSize()
		v.Content = mil.Raw(strings.Repeat("\x00", int(n)))
		return v
	}
	op := func(kind, out string, t mil.Type, args ...mil.Argument) *mil.Op {
		return &mil.Op{Type: kind, Inputs: args, Outputs: []mil.Variable{{Name: out, Type: t}}}
	}
	f := &mil.Function{Body: &mil.Block{Ops: []*mil.Op{
		op("constexpr_blockwise_shift_scale", "lut", mil.TensorOf(mil.Float16, 2, 1, 16, 1), mil.Arg("data", mil.Literal(data(mil.Int8, 2, 1, 16, 1))), mil.Arg("scale", mil.Literal(data(mil.Float16, 2, 1, 1, 1)))),
		op("constexpr_lut_to_dense", "w", mil.TensorOf(mil.Float16, 64, 32), mil.Arg("indices", mil.Literal(data(mil.UInt4, 64, 32))), mil.Arg("lut", mil.Ref("lut"))),
		op("linear", "y", mil.TensorOf(mil.Float16, 1, 64), mil.Arg("weight", mil.Ref("w")), mil.Arg("x", mil.Ref("x"))),
	}}}
	all := Weights(f)
	require.Len(t, all, 1)
	require.Equal(t, "w", all[0].Name)
	require.Equal(t, "palette4", all[0].Encoding())
	require.Equal(t, []int64{2, 1}, all[0].Blocks)
	require.Equal(t, int64(64*32/2+2*16+2*2), all[0].Bytes())
	require.Equal(t, []Count{{"linear", 1}}, Ops(f))
}

// invariant: no byte of a weights file is left out of the sum: every package of the shared set, damaged ones aside.
func TestTallyIsTheWeightsFile(t *testing.T) {
	for _, path := range shareddata.Cases(t, "coreml/*/*.mlpackage") {
		p, err := mlpackage.Open(path)
		if err != nil {
			continue
		}
		var all []Weight
		stored := map[any]int64{}
		for _, f := range p.Program.Functions {
			all = append(all, Weights(f)...)
			for op := range f.Body.All() {
				for _, v := range op.Values() {
					if v.Blob() != nil {
						n, _ := v.Type.ByteSize()
						stored[Identity(v)] = n
					}
				}
			}
		}
		var want, got int64
		for _, n := range stored {
			want += n
		}
		for _, s := range Tally(all) {
			got += s.Bytes
		}
		require.GreaterOrEqual(t, got, want, path) // tables given in the text count too
		require.NoError(t, p.Close())
	}
}
