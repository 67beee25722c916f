package tokenizer

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/shareddata"
)

// small opens a vocabulary of testdata/tokenizer, once for all tests.
func small(t testing.TB, name string) *Tokenizer {
	t.Helper()
	opened.Lock()
	defer opened.Unlock()
	if opened.byName[name] == nil {
		tok, err := Open(filepath.Join(shareddata.ModuleRoot(t), "testdata", "tokenizer", name))
		require.NoError(t, err)
		opened.byName[name] = tok
	}
	return opened.byName[name]
}

var opened = struct {
	sync.Mutex
	byName map[string]*Tokenizer
}{byName: map[string]*Tokenizer{}}

// vector is a text with its ids by Hugging Face's tokenizers; plain where no marker is written out in it.
type vector struct {
	Vocabulary, Text string
	IDs              []int
	Plain            bool
}

func vectors(t testing.TB) []vector {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(shareddata.ModuleRoot(t), "testdata", "tokenizer", "vectors.json"))
	require.NoError(t, err)
	var f struct{ Cases []vector }
	require.NoError(t, json.Unmarshal(data, &f))
	require.Greater(t, len(f.Cases), 100)
	return f.Cases
}

// TestTOK03IDsEqualTheReference is the claim of the package: a round trip that is perfect proves nothing.
func TestTOK03IDsEqualTheReference(t *testing.T) { // oracle: scripts/make_small_vocabulary.py, tokenizers 0.23.3
	for _, c := range vectors(t) {
		tok := small(t, c.Vocabulary)
		got, err := tok.EncodeMarked(c.Text)
		require.NoError(t, err)
		require.Equal(t, c.IDs, got, "%s: %.60q", c.Vocabulary, c.Text)
		if c.Plain {
			got, err = tok.Encode(c.Text)
			require.NoError(t, err)
			require.Equal(t, c.IDs, got, "%s: %.60q", c.Vocabulary, c.Text)
		}
		require.Equal(t, strings.ReplaceAll(c.Text, "▁", " "), tok.Decode(got, ShowSpecials))
	}
}

// llamaVectors are the texts and ids that come with llama.cpp's vocabularies: FILE.inp and FILE.out.
func llamaVectors(t testing.TB, vocabulary string) (texts []string, ids []string) {
	t.Helper()
	in, err := os.ReadFile(vocabulary + ".inp")
	require.NoError(t, err)
	out, err := os.ReadFile(vocabulary + ".out")
	require.NoError(t, err)
	texts = strings.Split(string(in), "\n__ggml_vocab_test__\n")
	ids = strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	require.Equal(t, len(texts), len(ids))
	return texts, ids
}

// gemma opens the full vocabulary of the conformance data.
func gemma(t testing.TB) *Tokenizer {
	t.Helper()
	gemmaOnce.Do(func() { gemmaTokenizer, gemmaErr = Open(shareddata.Cases(t, "tokenizer/*.gguf")[0]) })
	if gemmaTokenizer == nil && gemmaErr == nil {
		t.Skip("the vocabulary was not found by an earlier test")
	}
	require.NoError(t, gemmaErr)
	return gemmaTokenizer
}

var (
	gemmaOnce      sync.Once
	gemmaTokenizer *Tokenizer
	gemmaErr       error
)

func TestSharedVectorsFromGGUF(t *testing.T) { // oracle: llama.cpp's vectors
	for _, path := range shareddata.Cases(t, "tokenizer/*.gguf") {
		requireVectors(t, gemma(t), path)
	}
}

// TestSharedVectorsFromJSON goes the other way: the file that scripts/make_tokenizer_json.py makes of the same vocabulary.
func TestSharedVectorsFromJSON(t *testing.T) { // oracle: llama.cpp's vectors
	paths := shareddata.Cases(t, "tokenizer/*.gguf")
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 not found: it runs scripts/make_tokenizer_json.py")
	}
	dir := t.TempDir()
	out, err := exec.Command(python, filepath.Join(shareddata.ModuleRoot(t), "scripts", "make_tokenizer_json.py"), paths[0], dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	tok, err := Open(dir)
	require.NoError(t, err)
	requireVectors(t, tok, paths[0])
	require.Equal(t, gemma(t).ChatTemplate(), tok.ChatTemplate())
	require.Equal(t, gemma(t).Settings(), tok.Settings())
	require.Equal(t, gemma(t).v.Kinds, tok.v.Kinds)
}

func requireVectors(t *testing.T, tok *Tokenizer, path string) {
	texts, want := llamaVectors(t, path)
	for i, text := range texts {
		ids, err := tok.Encode(text)
		require.NoError(t, err)
		require.Equal(t, strings.Fields(want[i]), strings.Fields(strings.Trim(fmt.Sprint(ids), "[]")), "%q", text)
		require.Equal(t, text, tok.Decode(ids, ShowSpecials))
	}
	t.Logf("%d vectors of %s", len(texts), filepath.Base(path))
}

// The public cases' own figures, with the full vocabulary.
func TestTOK07AccentsStayAsTheyAre(t *testing.T) { // oracle: the published ids
	tok := gemma(t)
	ids, err := tok.Encode(" Caf\u00e9")
	require.NoError(t, err)
	require.Equal(t, []int{62367}, ids)
	apart, err := tok.Encode(" Cafe\u0301")
	require.NoError(t, err)
	require.NotEqual(t, ids, apart)
	require.Equal(t, " Cafe\u0301", tok.Decode(apart, HideSpecials), "no normalisation")
}

func TestTOK10MarkersAreSingleIDs(t *testing.T) { // oracle: the published ids
	tok := gemma(t)
	ids, err := tok.EncodeMarked("<|turn>user\nhi<turn|>\n")
	require.NoError(t, err)
	require.Equal(t, []int{105, 2364, 107, 2202, 106, 107}, ids)
	plain, err := tok.Encode("<|turn>user\nhi<turn|>\n</s><|tool_response><|channel>")
	require.NoError(t, err)
	for _, id := range plain {
		require.NotEqual(t, Control, tok.v.Kinds[id], "%q", tok.Piece(id))
		require.NotContains(t, tok.Settings().EOS, id)
	}
	require.ElementsMatch(t, []int{1, 106}, tok.Settings().EOS, "a literal </s> ends nothing")
}

// TestTOK06OddCharactersDecodeToThemselves: U+0109 is a character like any other.
func TestTOK06OddCharactersDecodeToThemselves(t *testing.T) { // oracle: the published id
	tok := gemma(t)
	require.Equal(t, "\u0109", tok.Decode([]int{240630}, HideSpecials))
	require.Equal(t, "\u0109 \u0120", roundTrip(t, small(t, "small.json"), "\u0109 \u0120"))
	require.NotEqual(t, Byte, small(t, "small.json").v.Kinds[mustID(t, small(t, "small.json"), "\u0109")])
}

func mustID(t testing.TB, tok *Tokenizer, piece string) int {
	t.Helper()
	id, ok := tok.ID(piece)
	require.True(t, ok, "%q", piece)
	return id
}

func roundTrip(t testing.TB, tok *Tokenizer, text string) string {
	t.Helper()
	ids, err := tok.Encode(text)
	require.NoError(t, err)
	return tok.Decode(ids, ShowSpecials)
}
