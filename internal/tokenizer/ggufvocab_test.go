package tokenizer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/tokenizer/gguf"
	"anelab/internal/tokenizer/gguf/gguftest"
)

// written writes a vocabulary as llama.cpp's converter does; edit may change the keys before.
func written(t testing.TB, v *Vocabulary, edit func(*gguftest.Builder)) []byte {
	t.Helper()
	var types []int32
	for id, k := range v.Kinds {
		n := map[Kind]int32{Normal: 1, Control: 3, UserDefined: 4, Unused: 5, Byte: 6}[k]
		if v.Pieces[id] == "<|channel>" {
			n = 4 // as Gemma 4's file has it
		}
		types = append(types, n)
	}
	var merges []string
	for _, m := range v.Merges {
		merges = append(merges, v.Pieces[m.Left]+" "+v.Pieces[m.Right])
	}
	b := &gguftest.Builder{}
	b.Text(ggufModel, "gemma4").Strings(ggufTokens, v.Pieces).Int32s(ggufTypes, types).Strings(ggufMerges, merges)
	b.Uint32(ggufBOS, uint32(v.Settings.BOS)).Uint32(ggufEOS, 1).Flag(ggufAddBOS, 1).Flag(ggufAddSpace, 0).Text(ggufTemplate, "T")
	if edit != nil {
		edit(b)
	}
	return b.Bytes()
}

func fromGGUF(data []byte) (*Tokenizer, error) {
	f, err := gguf.Parse("v.gguf", data)
	if err != nil {
		return nil, err
	}
	v, err := FromGGUF(f)
	if err != nil {
		return nil, err
	}
	return New(v)
}

// TestGGUFAndJSONAreOneTokenizer: the same vocabulary through either file gives the same ids.
func TestGGUFAndJSONAreOneTokenizer(t *testing.T) { // oracle: scripts/make_small_vocabulary.py, tokenizers 0.23.3
	tok, err := fromGGUF(written(t, small(t, "small.json").v, nil))
	require.NoError(t, err)
	require.Equal(t, "T", tok.ChatTemplate())
	require.Equal(t, small(t, "small.json").v.Kinds, tok.v.Kinds, "TOK-10 a marker that the file lists as user-defined is a marker")
	for _, c := range vectors(t) {
		if c.Vocabulary == "small.json" {
			got, err := tok.EncodeMarked(c.Text)
			require.NoError(t, err)
			require.Equal(t, c.IDs, got, "%.60q", c.Text)
		}
	}
}

// TestTOK10TypesLostInConversion: markers are known by name where a file calls them ordinary; </s> is no marker of Gemma's.
func TestTOK10TypesLostInConversion(t *testing.T) { // hand
	v := *small(t, "small.json").v
	data := written(t, &v, func(b *gguftest.Builder) {
		types := make([]int32, len(v.Pieces))
		for id, k := range v.Kinds {
			types[id] = map[Kind]int32{Normal: 1, Control: 1, Byte: 6}[k]
		}
		b.Remove(ggufTypes).Int32s(ggufTypes, types)
	})
	tok, err := fromGGUF(data)
	require.NoError(t, err)
	require.Equal(t, v.Kinds, tok.v.Kinds)
	require.Equal(t, "<|turn> user ⏎ hi <turn|> ⏎", pieces(t, tok, tok.EncodeMarked, "<|turn>user\nhi<turn|>\n"))
	require.NotContains(t, tok.Settings().EOS, mustID(t, tok, "</s>"))
	require.ElementsMatch(t, small(t, "small.json").Settings().EOS, tok.Settings().EOS)
}

// TestScoresStandInForMerges: files without merges have scores; the highest score is joined first.
func TestScoresStandInForMerges(t *testing.T) { // hand
	v := handVocabulary(Settings{BOS: 0, Unknown: -1})
	scores := make([]float32, len(v.Pieces))
	for id := range scores {
		scores[id] = -float32(id)
	}
	build := func(scores []float32) ([]byte, error) {
		data := written(t, v, func(b *gguftest.Builder) {
			b.Remove(ggufMerges).Remove(ggufModel).Text(ggufModel, "llama").Float32s(ggufScores, scores)
		})
		return data, nil
	}
	data, err := build(scores)
	require.NoError(t, err)
	tok, err := fromGGUF(data)
	require.NoError(t, err)
	for _, text := range []string{"abab", "bab", "aba", "  a", "a\n\n\nb"} {
		require.Equal(t, pieces(t, hand(t, v.Settings), hand(t, v.Settings).Encode, text), pieces(t, tok, tok.Encode, text))
	}
	data, err = build(scores[1:])
	require.NoError(t, err)
	_, err = fromGGUF(data)
	require.ErrorContains(t, err, "scores, want")
}

func TestTOK09SettingsComeFromTheMetadata(t *testing.T) { // hand
	v := handVocabulary(Settings{BOS: 0, Unknown: -1})
	for name, c := range map[string]struct {
		edit func(*gguftest.Builder)
		want Settings
	}{
		"gemma4":              {nil, Settings{AddBOS: true}},
		"no bos":              {func(b *gguftest.Builder) { b.Remove(ggufAddBOS).Flag(ggufAddBOS, 0) }, Settings{}},
		"bos not said":        {func(b *gguftest.Builder) { b.Remove(ggufAddBOS) }, Settings{AddBOS: true}},
		"dummy prefix":        {func(b *gguftest.Builder) { b.Remove(ggufAddSpace).Flag(ggufAddSpace, 1) }, Settings{AddBOS: true, Prefix: PrefixStart}},
		"extra spaces":        {func(b *gguftest.Builder) { b.Flag(ggufWhitespace, 1) }, Settings{AddBOS: true, CollapseSpaces: true}},
		"llama's own default": {func(b *gguftest.Builder) { b.Remove(ggufModel).Remove(ggufAddSpace).Text(ggufModel, "llama") }, Settings{AddBOS: true, Prefix: PrefixStart}},
		"llama for gemma4": {func(b *gguftest.Builder) {
			b.Remove(ggufModel).Remove(ggufAddSpace).Text(ggufModel, "llama").Text(ggufPre, "gemma4")
		}, Settings{AddBOS: true}},
	} {
		t.Run(name, func(t *testing.T) {
			tok, err := fromGGUF(written(t, v, c.edit))
			require.NoError(t, err)
			c.want.BOS, c.want.Unknown, c.want.EOS = 0, -1, []int{1, 2}
			require.Equal(t, c.want, tok.Settings())
		})
	}
}

func TestFromGGUFRefuses(t *testing.T) { // hand
	v := handVocabulary(Settings{BOS: 0, Unknown: -1})
	for name, c := range map[string]struct {
		edit func(*gguftest.Builder)
		want string
	}{
		"TOK-06 byte-level":   {func(b *gguftest.Builder) { b.Remove(ggufModel).Text(ggufModel, "gpt2") }, `tokenizer.ggml.model: "gpt2"`},
		"no tokenizer":        {func(b *gguftest.Builder) { b.Remove(ggufModel) }, "no such key"},
		"model is a number":   {func(b *gguftest.Builder) { b.Remove(ggufModel).Uint32(ggufModel, 7) }, "uint32, want string"},
		"no pieces":           {func(b *gguftest.Builder) { b.Remove(ggufTokens) }, "tokenizer.ggml.tokens: no such key"},
		"too few types":       {func(b *gguftest.Builder) { b.Remove(ggufTypes).Int32s(ggufTypes, []int32{1}) }, "1 types"},
		"type 9":              {func(b *gguftest.Builder) { b.Remove(ggufTypes).Int32s(ggufTypes, make([]int32, len(v.Pieces))) }, "type 0 of piece 0"},
		"merges are numbers":  {func(b *gguftest.Builder) { b.Remove(ggufMerges).Int32s(ggufMerges, []int32{1}) }, "an array of int32"},
		"merge without space": {func(b *gguftest.Builder) { b.Remove(ggufMerges).Strings(ggufMerges, []string{"ab"}) }, `merge 0 is "ab"`},
		"merge of strangers":  {func(b *gguftest.Builder) { b.Remove(ggufMerges).Strings(ggufMerges, []string{"x y"}) }, `merge 0: "x"`},
		"bos outside":         {func(b *gguftest.Builder) { b.Remove(ggufBOS).Uint32(ggufBOS, 1<<31) }, "special token"},
		"bos is a text":       {func(b *gguftest.Builder) { b.Remove(ggufBOS).Text(ggufBOS, "<bos>") }, "bos_token_id: string, want uint32"},
		"flag is 2":           {func(b *gguftest.Builder) { b.Remove(ggufAddBOS).Flag(ggufAddBOS, 2) }, "byte 2, want 0 or 1"},
		"no merges, no score": {func(b *gguftest.Builder) { b.Remove(ggufMerges) }, "tokenizer.ggml.scores: no such key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fromGGUF(written(t, v, c.edit))
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "v.gguf: ")
		})
	}
}
