package quality

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/attention"
	"anelab/internal/checkpoint"
	"anelab/internal/checkpoint/safetensors"
	"anelab/internal/gemmatest"
	"anelab/internal/shareddata"
	"anelab/quant"
)

// embedded is the miniature of testdata: 4-bit palettes, 32 sequences.
func embedded(t testing.TB) (*Runner, Unit) {
	t.Helper()
	dir := filepath.Join(shareddata.ModuleRoot(t), "testdata", "recall")
	f, err := os.Open(filepath.Join(dir, "recall.anelab.gz"))
	require.NoError(t, err)
	defer f.Close()
	r, err := gzip.NewReader(f)
	require.NoError(t, err)
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	c, err := checkpoint.Parse("recall.anelab", data)
	require.NoError(t, err)
	set, err := OpenSet(filepath.Join(dir, "eval.safetensors"))
	require.NoError(t, err)
	sum, err := Fingerprint(c.Config, c)
	require.NoError(t, err)
	return NewRunner(Inputs{Config: c.Config, Source: c, Checkpoint: sum, Set: set}), Unit{Checkpoint: sum, Set: set.Sum, Count: 1, Tasks: []Task{Recall, PPL}, Mode: "f32"}
}

// brief is the miniature with the first 128 tokens of its sequences, for tests that need no long distance.
func brief(t testing.TB) (*Runner, Unit) {
	t.Helper()
	const tokens = 128
	r, u := embedded(t)
	set := &Set{ScoreFrom: r.in.Set.ScoreFrom, Sum: "brief"}
	for _, q := range r.in.Set.Sequences {
		late := func(at int) bool { return at+1 >= tokens }
		set.Sequences = append(set.Sequences, Sequence{Tokens: q.Tokens[:tokens], Topics: slices.DeleteFunc(slices.Clone(q.Topics), late),
			Questions: slices.DeleteFunc(slices.Clone(q.Questions), func(x Question) bool { return late(x.At) })})
	}
	r.in.Set, u.Set = set, set.Sum
	return r, u
}

func TestEmbeddedLogits(t *testing.T) { // oracle: the reference's logits of the same palettes at the questions of two sequences
	r, u := embedded(t)
	require.NoError(t, u.SetWeights("int4g32", 20)) // linears too small for the packed file
	require.NoError(t, r.load(context.Background(), u))
	file, err := safetensors.Open(filepath.Join(shareddata.ModuleRoot(t), "testdata", "recall", "eval.safetensors"))
	require.NoError(t, err)
	defer file.Close()
	for i, name := range []string{"pal4_group32.seq0.at_query_pos", "pal4_group32.seq1.at_query_pos"} {
		tensor, err := file.Tensor(name)
		require.NoError(t, err)
		want, err := tensor.Floats()
		require.NoError(t, err)
		require.LessOrEqual(t, logitError(t, r.model, &r.in.Set.Sequences[i], want), 2e-3) // entries of tables differ in the last bit of fp16 here and there
	}
}

func TestEmbeddedRecallEndsAtTheWindow(t *testing.T) { // hand: a window of w shows distances below w; beyond it chance is 1/64
	r, u := embedded(t)
	for _, c := range []struct {
		attn  string
		shown int // buckets
	}{{"wfa:32", 2}, {"stream:4+128", 4}, {"stream:4+32/int8", 2}} {
		u.SetAttn(policies(t, c.attn, full...))
		s, err := r.Run(context.Background(), u)
		require.NoError(t, err)
		for i, b := range s.Recall[:7] {
			require.Equal(t, 4, b.Of)
			if i < c.shown {
				require.Equal(t, 4, b.Right, "%s at %s", c.attn, BucketName(i))
			} else {
				require.LessOrEqual(t, b.Right, 1, "%s at %s", c.attn, BucketName(i))
			}
		}
	}
}

func TestPartsAddUp(t *testing.T) { // invariant: a unit is the sum of its parts, bit for bit, whoever runs them, and its name is its content
	r, u := brief(t)
	u.Count, u.Tasks = 2, []Task{Recall, Passkey, PPL, Agreement}
	u.SetAttn(policies(t, "wfa:32", full...))
	var sum Sums
	names := map[string]bool{u.Name(): true}
	for _, part := range u.Parts(1) {
		other, _ := brief(t)
		s, err := other.Run(context.Background(), part)
		require.NoError(t, err)
		sum.Add(&s)
		names[part.Name()] = true
	}
	require.Len(t, names, 3)
	text, err := json.Marshal(sum)
	require.NoError(t, err)
	var back Sums
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, sum, back, "a result survives its file")
	whole, err := r.Run(context.Background(), u)
	require.NoError(t, err)
	require.Equal(t, sum.Recall, whole.Recall)
	require.Equal(t, sum.Passkey, whole.Passkey)
	require.InEpsilon(t, sum.KL, whole.KL, 1e-12)
	f := whole.Figures()
	require.Less(t, f.Agree, 1.0)
	require.Greater(t, f.KL, 0.0)
}

func TestTheFullModelAgreesWithItself(t *testing.T) { // hand: agreement 1, divergence 0
	r, u := brief(t)
	u.Tasks = []Task{Agreement}
	s, err := r.Run(context.Background(), u)
	require.NoError(t, err)
	require.Equal(t, Count{128, 128}, s.Agree)
	require.Zero(t, s.KL)
	require.True(t, math.IsNaN(s.Figures().Recall), "what was not counted is no figure")
}

func TestUnitNames(t *testing.T) { // hand: another setting, another name; the same content, the same
	_, u := embedded(t)
	other := u
	other.SetAttn(map[int]attention.Policy{9: attention.WFA{Window: 64}, 4: attention.Full{}})
	require.NotEqual(t, u.Name(), other.Name())
	require.Equal(t, []LayerSetting{{4, "full"}, {9, "wfa:64"}}, other.Attn)
	require.NoError(t, other.SetWeights("int4g32+tables", 2))
	require.Equal(t, "int4g32", other.Tables)
	require.Len(t, other.Weights, 3)
	other.SetLayers(1, 2, quant.DenseF16)
	require.Equal(t, []LayerSetting{{-1, "int4g32"}, {0, "int4g32"}, {1, "f16"}}, other.Weights)
	other.SetLayers(0, 1, quant.DenseF16)
	require.Equal(t, []LayerSetting{{-1, "f16"}, {0, "f16"}, {1, "f16"}}, other.Weights, "the projection of the per-layer inputs is of the first chunk")
	again := u
	again.SetAttn(map[int]attention.Policy{4: attention.Full{}, 9: attention.WFA{Window: 64}})
	require.NotEqual(t, again.Name(), other.Name())
	other.SetWeights(Stored, 2)
	require.Equal(t, again.Name(), other.Name())
	parts := u
	parts.Count = 20
	require.Equal(t, [][2]int{{0, 8}, {8, 8}, {16, 4}}, spans(parts.Parts(8)))
}

func spans(units []Unit) (all [][2]int) {
	for _, u := range units {
		all = append(all, [2]int{u.First, u.Count})
	}
	return all
}

func TestRunRefuses(t *testing.T) {
	r, u := embedded(t)
	for want, change := range map[string]func(u *Unit){
		"checkpoint that the unit was made for":      func(u *Unit) { u.Checkpoint = "x" },
		"evaluation file that the unit was made for": func(u *Unit) { u.Set = "x" },
		"want 0 to 31":                 func(u *Unit) { u.First, u.Count = 31, 2 },
		"at least one of each":         func(u *Unit) { u.Count = 0 },
		`did you mean "recall"?`:       func(u *Unit) { u.Tasks = []Task{"recal"} },
		"known: f32, hf-bf16, ane":     func(u *Unit) { u.Mode = "fp64" },
		"one of blocks":                func(u *Unit) { u.Attn = []LayerSetting{{4, "nothing"}} },
		"one for each of 4 query":      func(u *Unit) { u.Attn = []LayerSetting{{4, "duo:4+8:1"}} },
		"0 to 19":                      func(u *Unit) { u.Attn = []LayerSetting{{20, "full"}} },
		"int<bits>":                    func(u *Unit) { u.Weights = []LayerSetting{{4, "int"}} },
		"Core ML has no palette of 5 ": func(u *Unit) { u.Tables = "int5" },
	} {
		one := u
		change(&one)
		_, err := r.Run(context.Background(), one)
		require.ErrorContains(t, err, want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := r.Run(ctx, u)
	require.ErrorIs(t, err, context.Canceled)
}

// tensor is an I32 matrix.
func tensor(name string, cols int, values ...int32) quant.Tensor {
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, values); err != nil {
		panic(err)
	}
	return quant.Tensor{Name: name, DType: quant.I32, Shape: []int{len(values) / cols, cols}, Data: b.Bytes()}
}

// setFile is one sequence of 12 tokens: 2 16 | 3 40 100 | filler | 4 40 100 | 5 16, with changes.
func setFile(t testing.TB, changes ...quant.Tensor) []byte {
	t.Helper()
	all := []quant.Tensor{
		tensor("input_ids", 12, 2, 16, 3, 40, 100, 170, 171, 4, 40, 100, 5, 16),
		tensor("query_pos", 1, 8), tensor("value_pos", 1, 4), tensor("answer", 1, 100), tensor("distance", 1, 4), tensor("topic_pos", 1, 10),
	}
	for _, c := range changes {
		i := slices.IndexFunc(all, func(x quant.Tensor) bool { return x.Name == c.Name })
		if c.Data == nil {
			all = slices.Delete(all, i, i+1)
			continue
		}
		all[i] = c
	}
	path := filepath.Join(t.TempDir(), "set.safetensors")
	require.NoError(t, safetensors.Write(path, all, nil))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

func TestParseSet(t *testing.T) { // hand
	set, err := ParseSet("set", setFile(t))
	require.NoError(t, err)
	require.Equal(t, []Sequence{{Tokens: []int{2, 16, 3, 40, 100, 170, 171, 4, 40, 100, 5, 16},
		Questions: []Question{{At: 8, Value: 4, Answer: 100, Distance: 4}}, Topics: []int{10}}}, set.Sequences)
	require.Equal(t, filler, set.ScoreFrom)
	require.Equal(t, 171, set.MaxToken())
	plain, err := ParseSet("set", setFile(t, quant.Tensor{Name: "query_pos"}))
	require.NoError(t, err)
	require.Zero(t, plain.ScoreFrom, "text without questions is scored whole")
	require.Empty(t, plain.Sequences[0].Questions)
}

func TestParseSetRefuses(t *testing.T) {
	for _, c := range []struct {
		want   string
		change quant.Tensor
	}{
		{"input_ids", quant.Tensor{Name: "input_ids"}},
		{"answer", quant.Tensor{Name: "answer"}},
		{"positions 0 to 10, the value first", tensor("query_pos", 1, 11)},
		{"positions 0 to 10, the value first", tensor("query_pos", 1, 3)},
		{"positions 0 to 10, the value first", tensor("value_pos", 1, -1)},
		{"distance: 5, want 4", tensor("distance", 1, 5)},
		{"answer: 101, want 100", tensor("answer", 1, 101)},
		{"followed by the sequence's second token", tensor("topic_pos", 1, 5)},
		{"followed by the sequence's second token", tensor("topic_pos", 1, 11)},
		{"token: -2", tensor("input_ids", 12, -2, 16, 3, 40, 100, 170, 171, 4, 40, 100, 5, 16)},
		{"a matrix of integers", tensor("value_pos", 1, 4, 4)},
		{"different widths", tensor("distance", 2, 4, 4)},
	} {
		_, err := ParseSet("set", setFile(t, c.change))
		require.ErrorContains(t, err, c.want)
	}
	_, err := OpenSet(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func FuzzParseSet(f *testing.F) {
	f.Add(setFile(f))
	f.Add(setFile(f)[:100])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		set, err := ParseSet("fuzz", data)
		if err != nil {
			return
		}
		for _, s := range set.Sequences {
			for _, q := range s.Questions {
				require.Equal(t, q.Answer, s.Tokens[q.At+1])
			}
		}
	})
}

func TestTextSet(t *testing.T) { // hand: 2 in front of every five; the rest of one token is left out
	set, err := NewTextSet([]int{2}, []int{10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, 6)
	require.NoError(t, err)
	require.Equal(t, []Sequence{{Tokens: []int{2, 10, 11, 12, 13, 14}}, {Tokens: []int{2, 15, 16, 17, 18, 19}}}, set.Sequences)
	other, err := NewTextSet([]int{2}, []int{10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 20}, 6)
	require.NoError(t, err)
	require.NotEqual(t, set.Sum, other.Sum)
	_, err = NewTextSet([]int{2}, []int{10, 11}, 6)
	require.ErrorContains(t, err, "2 tokens, want at least one sequence of 6")
	_, err = NewTextSet([]int{2}, []int{10, 11}, 1)
	require.Error(t, err)
}

func TestResultsAreBoundToTheirUnit(t *testing.T) { // invariant: read back what was written; anything else is refused
	_, u := embedded(t)
	r := Result{Unit: u, Sums: Sums{Sequences: 1, KL: 1.0 / 3}}
	got, err := ParseResult("x", r.Encode(), u)
	require.NoError(t, err)
	require.Equal(t, r.Sums, got)
	require.Regexp(t, "^[0-9a-f]{64}[.]json$", u.File())
	other := u
	other.First = 1
	for _, data := range [][]byte{Result{Unit: other, Sums: r.Sums}.Encode(), r.Encode()[:200], append(r.Encode(), '{'), nil, Result{Unit: u}.Encode(), []byte(`{"unit": {"new": 1}}`)} {
		_, err := ParseResult("x", data, u)
		require.ErrorContains(t, err, "computed again", "%s", data)
	}
}

func TestFlashIsFullPastSeveralBlocks(t *testing.T) { // invariant: 8 blocks of 16: every argmax, and no divergence to speak of
	r, u := brief(t)
	u.Tasks = []Task{Agreement}
	u.SetAttn(policies(t, "flash:16", full...))
	s, err := r.Run(context.Background(), u)
	require.NoError(t, err)
	require.Equal(t, Count{128, 128}, s.Agree)
	require.Less(t, s.Figures().KL, 1e-9)
}

func TestPasskeyText(t *testing.T) { // hand: head, filler with the pair in the middle, question; the sequence has 9 filler symbols
	q := &Sequence{Tokens: []int{2, 16, 170, 171, 172, 3, 40, 100, 173, 174, 175, 176, 177, 178, 4, 40, 100}, Questions: []Question{{At: 15, Value: 7, Answer: 100, Distance: 8}}}
	set := &Set{ScoreFrom: 160}
	for depth, want := range map[int][]int{
		0:   {2, 16, 3, 40, 100, 170, 171, 172, 173, 4, 40},
		50:  {2, 16, 170, 171, 3, 40, 100, 172, 173, 4, 40},
		100: {2, 16, 170, 171, 172, 173, 3, 40, 100, 4, 40},
	} {
		text, answer, ok := passkeyText(set, q, 11, depth)
		require.True(t, ok)
		require.Equal(t, 100, answer)
		require.Equal(t, want, text)
	}
	_, _, ok := passkeyText(set, q, 17, 0)
	require.False(t, ok, "ten symbols of filler are not there")
	_, _, ok = passkeyText(set, &Sequence{Tokens: q.Tokens}, 11, 0)
	require.False(t, ok)
}

func TestPasskeyIsFoundWhereItIsSeen(t *testing.T) { // hand: with a window of 64, texts of 64 tokens are seen whole, longer ones only at their end
	r, u := embedded(t)
	u.Tasks, u.Count = []Task{Passkey}, 5 // all five depths
	u.SetAttn(policies(t, "stream:0+64", full...))
	s, err := r.Run(context.Background(), u)
	require.NoError(t, err)
	for _, c := range s.Passkey {
		seen := c.Tokens == 64 || c.DepthPercent == 100 || c.Tokens == 128 && c.DepthPercent >= 50
		require.Equal(t, seen, c.Right == c.Of, "%d tokens, depth %d %%", c.Tokens, c.DepthPercent)
		require.Equal(t, 1, c.Of)
	}
	require.Len(t, s.Passkey, 15)
}

func TestSumsKeepTheirCellsInOrder(t *testing.T) { // hand
	var s Sums
	for _, at := range [][2]int{{128, 0}, {64, 50}, {128, 50}, {64, 0}, {128, 0}} {
		s.cell(at[0], at[1]).add(true)
	}
	require.Equal(t, []Cell{{64, 0, Count{1, 1}}, {64, 50, Count{1, 1}}, {128, 0, Count{2, 2}}, {128, 50, Count{1, 1}}}, s.Passkey)
}

func TestBuckets(t *testing.T) { // hand: the evaluation's own buckets, and open ends
	for distance, want := range map[int]string{2: "0-15", 15: "0-15", 16: "16-31", 255: "128-255", 480: "384-511", 512: "512-1023", 99999: "16384-"} {
		require.Equal(t, want, BucketName(bucketOf(distance)))
	}
}

func TestDivergence(t *testing.T) { // hand: p = (¾, ¼), q = (½, ½): KL = ¾ ln 1.5 + ¼ ln 0.5
	x, y := []float32{float32(math.Log(3)), 0}, []float32{5, 5}
	require.InDelta(t, 0.75*math.Log(1.5)+0.25*math.Log(0.5), divergence(x, y, logSumExp(x), logSumExp(y)), 1e-7)
	require.InDelta(t, math.Log(4), logSumExp(x), 1e-7)
	require.Zero(t, divergence(x, x, logSumExp(x), logSumExp(x)))
}

func TestEncodeLeavesASmallerLastGroup(t *testing.T) { // hand: 5 rows in groups of 2: each group has its own two values
	values := []float32{1, 2, 1, 2, 3, 4, 3, 4, 5, 6}
	var b bytes.Buffer
	require.NoError(t, binary.Write(&b, binary.LittleEndian, values))
	m, err := quant.Dense(quant.Tensor{DType: quant.F32, Shape: []int{5, 2}, Data: b.Bytes()})
	require.NoError(t, err)
	e, err := quant.ParseEncoding("int1g2")
	require.NoError(t, err)
	got, err := Encode(context.Background(), m, e)
	require.NoError(t, err)
	require.Equal(t, [3]int{5, 2, 3*2*2 + 2}, [3]int{got.Rows(), got.Cols(), int(got.Bytes())}, "two fp16 values for each of three groups, a byte of indices for each part")
	row := make([]float32, 2)
	for r := range 5 {
		got.Row(row, r)
		require.Equal(t, values[2*r:2*r+2], row)
	}
	y := make([]float32, 5)
	got.MulVec(y, []float32{1, 10})
	require.Equal(t, []float32{21, 21, 43, 43, 65}, y)
	dense, err := Encode(context.Background(), m, quant.DenseF16)
	require.NoError(t, err)
	require.Equal(t, quant.DenseF16, dense.Encoding())
}

func TestHeadHasAnEncodingOfItsOwn(t *testing.T) { // invariant: other logits from the same hidden states, and the table is looked up as it was
	r, u := brief(t)
	u.Tasks = []Task{Agreement}
	kl := map[string]float64{}
	for _, head := range []string{"", "int4g32", "int2g32"} {
		one := u
		one.Head = head
		s, err := r.Run(context.Background(), one)
		require.NoError(t, err)
		kl[head] = s.Figures().KL
	}
	require.Zero(t, kl[""])
	require.Greater(t, kl["int4g32"], 0.0)
	require.Greater(t, kl["int2g32"], kl["int4g32"])
}

func TestFingerprintIsContent(t *testing.T) { // invariant: other weights, another fingerprint; the same, the same
	sums := map[string]bool{}
	for _, seed := range []uint64{1, 2, 1} {
		src := gemmatest.New(gemmatest.Config(), seed)
		sum, err := Fingerprint(gemmatest.Config(), plain{src})
		require.NoError(t, err)
		sums[sum] = true
	}
	require.Len(t, sums, 2)
	c := gemmatest.Config()
	c.SlidingWindow++
	sum, err := Fingerprint(c, plain{gemmatest.New(gemmatest.Config(), 1)})
	require.NoError(t, err)
	require.False(t, sums[sum])
}

// plain is a source of two tensors.
type plain struct{ *gemmatest.Source }

func (plain) Names() []string {
	return []string{"embed_tokens.weight", "layers.4.self_attn.q_proj.weight"}
}

func (p plain) Describe(name string) (quant.Tensor, error) { return p.Tensor(name) }

func (p plain) Matrix(name string) (quant.Matrix, error) {
	t, err := p.Tensor(name)
	if err != nil {
		return nil, err
	}
	return quant.Dense(t)
}

func (plain) Head() (quant.Matrix, error) { return nil, nil }

func TestMeasuredModesDiffer(t *testing.T) { // 16 bits cost a little, two bits of weights a lot; the order is what counts
	r, u := brief(t)
	u.Tasks = []Task{Agreement}
	var kl []float64
	for _, c := range [][2]string{{"f32", Stored}, {"ane", Stored}, {"f32", "int2g32"}} {
		one := u
		one.Mode = c[0]
		require.NoError(t, one.SetWeights(c[1], 20))
		s, err := r.Run(context.Background(), one)
		require.NoError(t, err)
		kl = append(kl, s.Figures().KL)
	}
	require.True(t, kl[0] == 0 && 0 < kl[1] && kl[1] < 1e-3 && kl[1] < kl[2]/100, "%v", kl)
	require.True(t, strings.HasPrefix(r.in.Source.Path(), "recall"))
}
