package chunking

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab"
	"anelab/gemma4"
	"anelab/quant"
)

// published returns a model of testdata/configs.
func published(t testing.TB, name string) *Model {
	t.Helper()
	path := "testdata/configs/" + name + ".json"
	data, err := anelab.Files.ReadFile(path)
	require.NoError(t, err)
	cfg, err := gemma4.ParseConfig(path, data)
	require.NoError(t, err)
	m, err := NewModel(cfg)
	require.NoError(t, err)
	return m
}

// cuts writes a layout as the layers at which chunks begin; the head is in the last chunk.
func cuts(m *Model, starts ...int) Layout {
	var l Layout
	for i, lo := range starts {
		hi := len(m.Layers)
		if i+1 < len(starts) {
			hi = starts[i+1]
		}
		l.Cuts = append(l.Cuts, Cut{Lo: lo, Hi: hi, Head: i == len(starts)-1})
	}
	return l
}

func planOf(t testing.TB, m *Model, l Layout) *Plan {
	t.Helper()
	p, err := l.Plan(m)
	require.NoError(t, err)
	return p
}

// text writes ports one per line: name, shape, and the layers behind the slots.
func text(ports []Port) string {
	var b strings.Builder
	for _, p := range ports {
		b.WriteString(p.Name + " " + strings.ReplaceAll(fmt.Sprint(p.Shape), " ", ","))
		if p.Type == Int32 {
			b.WriteString(" int32")
		}
		if p.Role == RoleCache || p.Role == RoleHandoff {
			fmt.Fprintf(&b, " L%s", strings.ReplaceAll(fmt.Sprint(p.Layers), " ", ","))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Spec forward.md §4.0, E2B at C = 2048: the inputs that every decode chunk declares. hand
const commonE2B = `
	hidden_states [1,1,1536]
	causal_mask_full [1,1,1,2048]
	causal_mask_sliding [1,1,1,512]
	update_mask [1,1,2048,1]
	%s [1,1,8960]
	cos_s [1,1,1,256]
	sin_s [1,1,1,256]
	cos_f [1,1,1,512]
	sin_f [1,1,1,512]
	`

// Spec forward.md §4.2–4.5 row by row, at C = 2048. hand
var (
	rawE2B      = fmt.Sprintf(commonE2B, "per_layer_raw")
	combinedE2B = fmt.Sprintf(commonE2B, "per_layer_combined")

	donorPorts = `
	kv13_k [1,1,512,256] L[13]
	kv13_v [1,1,512,256] L[13]
	kv14_k [1,1,2048,512] L[14]
	kv14_v [1,1,2048,512] L[14]
	`
	headPorts = `
	token_id [1] int32
	token_logit [1]
	hidden_states_out [1,1,1536]
	`
)

// cachePorts writes the four cache ports of a table row.
func cachePorts(suffix string, sliding, full []int) string {
	join := func(l []int) string { return strings.ReplaceAll(fmt.Sprint(l), " ", ",") }
	var b strings.Builder
	for _, k := range []string{"K", "V"} {
		fmt.Fprintf(&b, "%s_sliding_%s [%d,1,512,512] L%s\n", k, suffix, len(sliding), join(sliding))
	}
	for _, k := range []string{"K", "V"} {
		fmt.Fprintf(&b, "%s_full_%s [%d,1,2048,512] L%s\n", k, suffix, len(full), join(full))
	}
	return b.String()
}

func TestPortsOfThePublishedTables(t *testing.T) {
	m := published(t, "e2b")
	hidden := "hidden_states_out [1,1,1536]\n"
	ple := "per_layer_combined_out [1,1,8960]\n"
	s1, f1 := []int{0, 1, 2, 3, 5, 6, 7}, []int{4}
	s2, f2 := []int{8, 10, 11, 12, 13}, []int{9, 14}
	s12, f12 := append(append([]int{}, s1...), s2...), append(append([]int{}, f1...), f2...)
	for _, c := range []struct {
		name    string
		starts  []int
		chunk   int
		in, out string
	}{
		{"4.2 chunk1", []int{0, 8, 15, 25}, 0, rawE2B + cachePorts("in", s1, f1), hidden + cachePorts("out", s1, f1) + ple},
		{"4.2 chunk2", []int{0, 8, 15, 25}, 1, combinedE2B + cachePorts("in", s2, f2), hidden + cachePorts("out", s2, f2) + donorPorts},
		{"4.2 chunk3", []int{0, 8, 15, 25}, 2, combinedE2B + donorPorts, hidden},
		{"4.2 chunk4", []int{0, 8, 15, 25}, 3, combinedE2B + donorPorts, headPorts},
		{"4.3 chunk2_3way", []int{0, 8, 25}, 1, combinedE2B + cachePorts("in", s2, f2), hidden + cachePorts("out", s2, f2) + donorPorts},
		{"4.3 chunk3_3way", []int{0, 8, 25}, 2, combinedE2B + donorPorts, headPorts},
		{"4.4 chunk1_topoI", []int{0, 15, 25}, 0, rawE2B + cachePorts("in", s12, f12), hidden + cachePorts("out", s12, f12) + ple + donorPorts},
		{"4.4 chunk2_topoI", []int{0, 15, 25}, 1, combinedE2B + donorPorts, hidden},
		{"4.4 chunk3_topoI", []int{0, 15, 25}, 2, combinedE2B + donorPorts, headPorts},
		{"4.5 merged_chunk1", []int{0, 15}, 0, rawE2B + cachePorts("in", s12, f12), hidden + cachePorts("out", s12, f12) + ple + donorPorts},
		{"4.5 merged_chunk2", []int{0, 15}, 1, combinedE2B + donorPorts, headPorts},
		{"4.5 merged_full", []int{0}, 0, rawE2B + cachePorts("in", s12, f12), headPorts + cachePorts("out", s12, f12)},
	} {
		t.Run(c.name, func(t *testing.T) {
			chunk := planOf(t, m, cuts(m, c.starts...)).Chunks[c.chunk]
			require.Equal(t, squeeze(c.in), text(chunk.Inputs))
			require.Equal(t, squeeze(c.out), text(chunk.Outputs))
		})
	}
}

// squeeze drops indentation and empty lines.
func squeeze(s string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(s, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

func opsOf(c *Chunk, layer int) (params, bytes, norms, channels, attn int64) {
	for _, o := range c.Ops {
		switch {
		case o.Layer != layer:
		case o.Kind == OpNorm:
			norms += int64(o.Rows)
		case o.Kind == OpAttention:
			attn += o.MACs
		default:
			params += int64(o.Rows) * int64(o.Cols)
			bytes += o.WeightBytes
			channels += int64(o.Rows)
		}
	}
	return
}

func TestParametersPerLayer(t *testing.T) { // spec forward.md §8.1, hand
	m := published(t, "e2b")
	chunk := planOf(t, m, cuts(m, 0)).Chunks[0]
	for _, c := range []struct {
		name                                          string
		layer                                         int
		q, kv, o, mlp, ple, total, norms, chans, int4 int64
	}{
		{"sliding own", 0, 3_145_728, 786_432, 3_145_728, 28_311_552, 786_432, 36_175_872, 8_193, 19_712, 18_107_648},
		{"full own", 14, 6_291_456, 1_572_864, 6_291_456, 28_311_552, 786_432, 43_253_760, 8_705, 22_272, 21_649_152},
		{"sliding shared", 15, 3_145_728, 0, 3_145_728, 56_623_104, 786_432, 63_700_992, 7_937, 31_488, 31_881_984},
		{"full shared", 34, 6_291_456, 0, 6_291_456, 56_623_104, 786_432, 69_992_448, 8_193, 33_536, 35_029_760},
	} {
		t.Run(c.name, func(t *testing.T) {
			by := map[OpKind]int64{}
			for _, o := range chunk.Ops {
				if o.Layer == c.layer {
					by[o.Kind] += int64(o.Rows) * int64(o.Cols)
				}
			}
			require.Equal(t, []int64{c.q, c.kv, c.o, c.mlp, c.ple},
				[]int64{by[OpQ], by[OpK] + by[OpV], by[OpO], by[OpGate] + by[OpUp] + by[OpDown], by[OpPLEGate] + by[OpPLEProj]})
			params, bytes, norms, channels, _ := opsOf(chunk, c.layer)
			require.Equal(t, []int64{c.total, c.norms, c.chans, c.int4}, []int64{params, norms, channels, bytes})
		})
	}
}

func TestWeightsPerChunk(t *testing.T) { // spec forward.md §8.2, hand
	m := published(t, "e2b")
	for _, c := range []struct {
		name                      string
		starts                    []int
		chunk                     int
		params, int4, sum, halves int64
	}{
		{"chunk1", []int{0, 8, 15, 25}, 0, 310_247_424, 155_292_928, 155_425_552, 620_494_848},
		{"chunk2", []int{0, 8, 15, 25}, 1, 267_386_880, 133_836_544, 133_953_294, 534_773_760},
		{"chunk3", []int{0, 8, 15, 25}, 2, 649_592_832, 325_115_392, 325_275_156, 1_299_185_664},
		{"chunk4", []int{0, 8, 15, 25}, 3, 1_052_246_016, 526_704_128, 526_866_964, 2_104_492_032},
		{"chunk2_3way", []int{0, 8, 25}, 1, 916_979_712, 458_951_936, 459_228_450, 1_833_959_424},
		{"merged_chunk1", []int{0, 15}, 0, 577_634_304, 289_129_472, 289_378_846, 1_155_268_608},
		{"merged_chunk2", []int{0, 15}, 1, 1_701_838_848, 851_819_520, 852_142_120, 3_403_677_696},
		{"merged_full", []int{0}, 0, 2_279_473_152, 1_140_948_992, 1_141_520_966, 4_558_946_304},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := cuts(m, c.starts...)
			got := planOf(t, m, l).Chunks[c.chunk].Totals
			require.Equal(t, []int64{c.params, c.int4, c.sum}, []int64{got.LinearParams, got.LinearBytes, got.WeightBytes})
			l.Cuts[c.chunk].Weights = quant.DenseF16
			require.Equal(t, c.halves, planOf(t, m, l).Chunks[c.chunk].Totals.LinearBytes)
		})
	}
	full := planOf(t, m, cuts(m, 0)).Chunks[0]
	head := full.Ops[len(full.Ops)-1]
	require.Equal(t, OpHead, head.Kind)
	require.EqualValues(t, 201_588_736, head.WeightBytes)
	// §8.1 whole model: everything but the table of per-layer embeddings is in the chunks.
	require.EqualValues(t, 2_279_759_139, full.Totals.LinearParams+(full.Totals.WeightBytes-full.Totals.LinearBytes)/2)
}

func TestKVMemoryAndTraffic(t *testing.T) { // spec forward.md §8.3 and §8.4, hand
	m := published(t, "e2b")
	for _, c := range []struct {
		context               int
		natural, stored, read int64
		copied                []int64
		sum                   int64
	}{
		{512, 9_437_184, 15_728_640, 22_020_096, []int64{16_777_216, 16_252_928, 1_572_864, 1_572_864}, 36_175_872},
		{2048, 18_874_368, 25_165_824, 44_040_192, []int64{23_068_672, 31_981_568, 4_718_592, 4_718_592}, 64_487_424},
		{8192, 56_623_104, 62_914_560, 132_120_576, []int64{48_234_496, 94_896_128, 17_301_504, 17_301_504}, 177_733_632},
	} {
		t.Run(fmt.Sprint("C=", c.context), func(t *testing.T) {
			l := cuts(m, 0, 8, 15, 25)
			l.Context = c.context
			p := planOf(t, m, l)
			require.Equal(t, c.context, p.Context)
			var sum, natural int64
			for i, chunk := range p.Chunks {
				n := chunk.Totals.CacheBytes + chunk.Totals.HandoffInBytes + chunk.Totals.HandoffOutBytes
				require.Equal(t, c.copied[i], n, "chunk %d", i+1)
				sum += n
				for _, o := range chunk.Ops {
					if o.Layer >= 0 && m.Layers[o.Layer].OwnsKV() {
						natural += o.KVReadBytes
					}
				}
			}
			total := p.Totals()
			require.Equal(t, []int64{c.natural, c.stored, c.read, c.sum}, []int64{natural, total.CacheInBytes, total.KVReadBytes, sum})
		})
	}
}

func TestFLOPsPerLayer(t *testing.T) { // spec forward.md §8.5, hand: FLOPs are twice the MACs; attention is 4·8·d·rows
	m := published(t, "e2b")
	contexts := []int{512, 2048, 8192}
	for _, c := range []struct {
		name     string
		layer    int
		linear   int64
		attn     [3]int64
		millions [3]float64
	}{
		{"sliding own", 0, 72_351_744, [3]int64{4_194_304, 4_194_304, 4_194_304}, [3]float64{76.5, 76.5, 76.5}},
		{"full own", 4, 86_507_520, [3]int64{8_388_608, 33_554_432, 134_217_728}, [3]float64{94.9, 120.1, 220.7}},
		{"sliding shared", 33, 127_401_984, [3]int64{4_194_304, 4_194_304, 4_194_304}, [3]float64{131.6, 131.6, 131.6}},
		{"full shared", 19, 139_984_896, [3]int64{8_388_608, 33_554_432, 134_217_728}, [3]float64{148.4, 173.5, 274.2}},
	} {
		for i, context := range contexts {
			l := cuts(m, 0)
			l.Context = context
			params, _, _, _, attn := opsOf(planOf(t, m, l).Chunks[0], c.layer)
			require.Equal(t, c.linear, 2*params, c.name)
			require.Equal(t, c.attn[i], 2*attn, c.name)
			require.InDelta(t, c.millions[i], float64(2*params+2*attn)/1e6, 0.051, "%s @%d", c.name, context)
		}
	}
	for i, billions := range []float64{4.735, 4.911, 5.616} {
		l := cuts(m, 0, 8, 25)
		l.Context = contexts[i]
		require.InDelta(t, billions, 2*float64(planOf(t, m, l).Totals().MACs)/1e9, 0.0005)
		l.QueryTokens = 3
		require.InDelta(t, 3*billions, 2*float64(planOf(t, m, l).Totals().MACs)/1e9, 0.0015)
	}
}
