package tokenizer

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/shareddata"
)

// tinyJSON is a tokenizer.json of four pieces beside the 256 bytes; edit may change it before it is written.
func tinyJSON(t testing.TB, edit func(map[string]any)) []byte {
	t.Helper()
	vocab := map[string]any{"<bos>": 0, "a": 1, "b": 2, "ab": 3}
	for b := range 256 {
		vocab[bytePiece(byte(b))] = 4 + b
	}
	f := map[string]any{
		"added_tokens": []any{map[string]any{"id": 0, "content": "<bos>", "special": true}},
		"normalizer":   map[string]any{"type": "Replace", "pattern": map[string]any{"String": " "}, "content": "▁"},
		"model":        map[string]any{"type": "BPE", "vocab": vocab, "merges": []any{[]any{"a", "b"}}, "byte_fallback": true},
	}
	if edit != nil {
		edit(f)
	}
	data, err := json.Marshal(f)
	require.NoError(t, err)
	return data
}

// of returns a part of the document.
func of(f map[string]any, part string) map[string]any { return f[part].(map[string]any) }

func TestMergesInBothForms(t *testing.T) { // hand
	for name, merges := range map[string]any{"pairs": []any{[]any{"a", "b"}}, "lines": []any{"a b"}} {
		v, err := ParseJSON("t.json", tinyJSON(t, func(f map[string]any) { of(f, "model")["merges"] = merges }))
		require.NoError(t, err, name)
		require.Equal(t, []Merge{{1, 2, 3}}, v.Merges)
		require.Equal(t, Settings{BOS: 0, Unknown: -1}, v.Settings)
	}
}

func TestTOK09SettingsComeFromTheFile(t *testing.T) { // hand
	sequence := func(all ...any) map[string]any { return map[string]any{"type": "Sequence", "normalizers": all} }
	replace := map[string]any{"type": "Replace", "pattern": map[string]any{"String": " "}, "content": "▁"}
	for name, c := range map[string]struct {
		normalizer, pre any
		want            Settings
	}{
		"gemma":                      {replace, map[string]any{"type": "Split", "pattern": map[string]any{"String": " "}, "behavior": "MergedWithPrevious"}, Settings{}},
		"prefix prepended":           {sequence(map[string]any{"type": "Prepend", "prepend": "▁"}, replace), nil, Settings{Prefix: PrefixAlways}},
		"metaspace never":            {nil, map[string]any{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": false}, Settings{}},
		"metaspace first":            {nil, map[string]any{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": false}, Settings{Prefix: PrefixStart}},
		"metaspace, the older field": {nil, map[string]any{"type": "Metaspace", "replacement": "▁", "add_prefix_space": true, "split": false}, Settings{Prefix: PrefixAlways}},
		"extra spaces": {sequence(map[string]any{"type": "Replace", "pattern": map[string]any{"Regex": " {2,}"}, "content": " "}, replace), nil,
			Settings{CollapseSpaces: true}},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := ParseJSON("t.json", tinyJSON(t, func(f map[string]any) { f["normalizer"], f["pre_tokenizer"] = c.normalizer, c.pre }))
			require.NoError(t, err)
			c.want.BOS, c.want.Unknown = 0, -1
			require.Equal(t, c.want, v.Settings)
		})
	}
}

func TestParseJSONRefuses(t *testing.T) { // hand
	model := func(key string, value any) func(map[string]any) {
		return func(f map[string]any) { of(f, "model")[key] = value }
	}
	part := func(key string, value any) func(map[string]any) {
		return func(f map[string]any) { f[key] = value }
	}
	vocab := func(piece string, id any) func(map[string]any) {
		return func(f map[string]any) { of(of(f, "model"), "vocab")[piece] = id }
	}
	for name, c := range map[string]struct {
		edit func(map[string]any)
		want string
	}{
		"TOK-03 unigram":              {model("type", "Unigram"), `model.type: "Unigram", want "BPE"`},
		"no model":                    {part("model", map[string]any{}), `model.type: ""`},
		"ignore_merges":               {model("ignore_merges", true), "ignore_merges"},
		"dropout":                     {model("dropout", 0.1), "dropout"},
		"suffixes":                    {model("end_of_word_suffix", "</w>"), "suffixes"},
		"TOK-07 a normaliser":         {part("normalizer", map[string]any{"type": "NFC"}), "normalizer: NFC"},
		"spaces unmarked":             {part("normalizer", nil), "writes a space as ▁"},
		"TOK-06 byte-level":           {part("pre_tokenizer", map[string]any{"type": "ByteLevel"}), "pre_tokenizer: ByteLevel"},
		"TOK-07 a regex split":        {part("pre_tokenizer", map[string]any{"type": "Split", "pattern": map[string]any{"Regex": "\\w+"}}), `Split of "\\w+"`},
		"metaspace that splits":       {part("pre_tokenizer", map[string]any{"type": "Metaspace", "replacement": "▁"}), "Metaspace"},
		"byte-level decoder":          {part("decoder", map[string]any{"type": "ByteLevel"}), "decoder: ByteLevel"},
		"single_word":                 {part("added_tokens", []any{map[string]any{"id": 0, "content": "<bos>", "single_word": true}}), "single_word"},
		"an empty token":              {part("added_tokens", []any{map[string]any{"id": 260, "content": ""}}), "empty token"},
		"another id":                  {part("added_tokens", []any{map[string]any{"id": 3, "content": "<bos>"}}), "id 0 as in the vocabulary"},
		"a gap":                       {vocab("x", 9000), `"x" with id 9000, want every id from 0 to 260 once`},
		"an id twice":                 {vocab("x", 3), "once"},
		"a negative id":               {vocab("x", -1), "id -1"},
		"a huge id":                   {vocab("x", 1<<31-1), "id 2147483647"},
		"merge of unknown pieces":     {model("merges", []any{[]any{"a", "z"}}), `merge 0: "z", want a piece`},
		"merge with unknown result":   {model("merges", []any{[]any{"b", "a"}}), `merge 0: "ba"`},
		"merge of three":              {model("merges", []any{[]any{"a", "b", "a"}}), "3 pieces"},
		"merge line of three":         {model("merges", []any{"a b c"}), "two pieces and a space"},
		"merge line of one":           {model("merges", []any{"ab"}), "two pieces and a space"},
		"merges of another type":      {model("merges", 7), "no tokenizer"},
		"a sequence without end":      {part("decoder", map[string]any{"type": "Sequence", "decoders": many(40)}), "at most 16 steps"},
		"a decoder that is no object": {part("decoder", 7), "an object with a type"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseJSON("t.json", tinyJSON(t, c.edit))
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "t.json: ")
		})
	}
	for _, text := range []string{"", "{", "[]", `"x"`, "null"} {
		_, err := ParseJSON("t.json", []byte(text))
		require.Error(t, err, text)
	}
}

func many(n int) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = map[string]any{"type": "Fuse"}
	}
	return all
}

func TestOpenFindsTheTemplate(t *testing.T) { // hand
	for name, c := range map[string]struct {
		files map[string]string
		want  string
		err   string
	}{
		"none":             {nil, "", ""},
		"a file":           {map[string]string{templateName: "T1", configName: `{"chat_template":"T2"}`}, "T1", ""},
		"a field":          {map[string]string{configName: `{"chat_template":"T2"}`}, "T2", ""},
		"a list":           {map[string]string{configName: `{"chat_template":[{"name":"rag","template":"T3"},{"name":"default","template":"T4"}]}`}, "T4", ""},
		"no default":       {map[string]string{configName: `{"chat_template":[{"name":"rag","template":"T3"}]}`}, "", "without a default"},
		"config is broken": {map[string]string{configName: `{`}, "", "tokenizer_config.json"},
		"field is broken":  {map[string]string{configName: `{"chat_template":7}`}, "", "chat_template"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, FileName), tinyJSON(t, nil), 0o600))
			for file, text := range c.files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
			}
			tok, err := Open(dir)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, tok.ChatTemplate())
		})
	}
	_, err := Open(filepath.Join(t.TempDir(), "none.json"))
	require.ErrorContains(t, err, "none.json")
	_, err = Open("tokenizer.model")
	require.ErrorContains(t, err, "take tokenizer.json")
}

// TestCLI05NothingOfTheFolderIsExecuted: a configuration that names code is a configuration; its tokenizer is the one of the file.
func TestCLI05NothingOfTheFolderIsExecuted(t *testing.T) { // hand
	dir := t.TempDir()
	proof := filepath.Join(dir, "executed")
	script := "#!/bin/sh\ntouch " + proof + "\n"
	for name, text := range map[string]string{
		FileName:                  string(tinyJSON(t, nil)),
		configName:                `{"tokenizer_class":"Evil","auto_map":{"AutoTokenizer":["evil.py","evil.py"]},"model_file":"evil.py"}`,
		"evil.py":                 "open(" + `"` + proof + `"` + ", 'w')",
		"tokenizer.py":            script,
		"setup.sh":                script,
		"chat_template.jinja":     "{{ ''.__class__.__mro__ }}{% include 'evil.py' %}",
		"special_tokens_map.json": `{"bos_token":"<bos>"}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
	}
	tok, err := Open(dir)
	require.NoError(t, err)
	require.Equal(t, 260, tok.Size())
	require.NoFileExists(t, proof)
}

func FuzzParseJSON(f *testing.F) {
	f.Add(tinyJSON(f, nil))
	f.Add([]byte(`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a a"],"unk_token":"a"},"normalizer":{"type":"Replace","pattern":{"String":" "},"content":"▁"}}`))
	f.Add([]byte(`{"model":{"vocab":{"a":-1}},"added_tokens":[{"id":1e9}],"decoder":{"type":"Sequence","decoders":[null]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := ParseJSON("fuzz", data)
		if err != nil {
			return
		}
		tok, err := New(v)
		if err != nil {
			return
		}
		text := strings.ToValidUTF8(string(data), "")
		ids, err := tok.EncodeMarked(text)
		require.NoError(t, err)
		tok.Decode(ids, ShowSpecials)
	})
}

func TestSmallVocabularyIsWhatItSays(t *testing.T) { // hand
	data, err := os.ReadFile(filepath.Join(shareddata.ModuleRoot(t), "testdata", "tokenizer", "tiny-e2b.json"))
	require.NoError(t, err)
	require.True(t, bytes.Contains(data, []byte(`"byte_fallback":true`)))
	tok := small(t, "tiny-e2b.json")
	require.NoError(t, tok.Matches(320), "the rows of the tiny model's embedding")
	require.Equal(t, 2, tok.Settings().BOS)
	require.ElementsMatch(t, []int{1, mustID(t, tok, "<turn|>")}, tok.Settings().EOS)
}
