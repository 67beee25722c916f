package tokenizer

import (
	"fmt"
	"slices"
	"sort"

	"anelab/internal/format"
	"anelab/internal/tokenizer/gguf"
)

// Keys of a GGUF file that describe its tokenizer.
const (
	ggufModel      = "tokenizer.ggml.model"
	ggufPre        = "tokenizer.ggml.pre"
	ggufTokens     = "tokenizer.ggml.tokens"
	ggufTypes      = "tokenizer.ggml.token_type"
	ggufScores     = "tokenizer.ggml.scores"
	ggufMerges     = "tokenizer.ggml.merges"
	ggufBOS        = "tokenizer.ggml.bos_token_id"
	ggufEOS        = "tokenizer.ggml.eos_token_id"
	ggufEOT        = "tokenizer.ggml.eot_token_id"
	ggufUnknown    = "tokenizer.ggml.unknown_token_id"
	ggufAddBOS     = "tokenizer.ggml.add_bos_token"
	ggufAddSpace   = "tokenizer.ggml.add_space_prefix"
	ggufWhitespace = "tokenizer.ggml.remove_extra_whitespaces"
	ggufTemplate   = "tokenizer.chat_template"
)

// ggufKinds are token types by their number in the file: normal, unknown, control, user defined, unused, byte.
var ggufKinds = map[int32]Kind{1: Normal, 2: Control, 3: Control, 4: UserDefined, 5: Unused, 6: Byte}

// FromGGUF reads the vocabulary in the metadata of a GGUF file. Whether spaces are written as ▁ is said by the tokenizer's name, never
// guessed from a piece: Gemma's vocabulary holds the characters that other tokenizers use as marks.
func FromGGUF(f *gguf.File) (*Vocabulary, error) {
	v := &Vocabulary{Path: f.Path, Settings: Settings{BOS: -1, Unknown: -1}}
	for _, step := range []func(*gguf.File) error{v.ggufAlgorithm, v.ggufPieces, v.ggufJoins, v.ggufSettings} {
		if err := step(f); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// ggufAlgorithm: "gemma4", or "llama" for files that other tools write for Gemma.
func (v *Vocabulary) ggufAlgorithm(f *gguf.File) error {
	name, err := f.Text(ggufModel)
	if err != nil {
		return err
	}
	if name != "gemma4" && name != "llama" {
		return v.fault(ggufModel, fmt.Sprintf("%q", name), `"gemma4" or "llama"`, "other tokenizers write spaces otherwise; is this file of another model?")
	}
	return nil
}

func (v *Vocabulary) ggufPieces(f *gguf.File) error {
	var err error
	if v.Pieces, err = f.Strings(ggufTokens); err != nil {
		return err
	}
	types, err := f.Int32s(ggufTypes)
	if err != nil {
		return err
	}
	if len(types) != len(v.Pieces) {
		return v.fault(ggufTypes, fmt.Sprintf("%d types", len(types)), fmt.Sprintf("%d as there are pieces", len(v.Pieces)), "")
	}
	v.Kinds = make([]Kind, len(types))
	for id, n := range types {
		kind, ok := ggufKinds[n]
		if !ok {
			return v.fault(ggufTypes, fmt.Sprintf("type %d of piece %d", n, id), "1 to 6", "")
		}
		if (kind == UserDefined || kind == Normal) && isMarker(v.Pieces[id]) {
			kind = Control
		}
		v.Kinds[id] = kind
	}
	return nil
}

// ggufJoins takes the merges, or makes them from the scores where there are none.
func (v *Vocabulary) ggufJoins(f *gguf.File) error {
	ids, err := v.index()
	if err != nil {
		return err
	}
	if !f.Has(ggufMerges) {
		return v.mergesFromScores(f, ids)
	}
	lines, err := f.Strings(ggufMerges)
	if err != nil {
		return err
	}
	pairs, err := splitMerges(lines)
	if err != nil {
		return &format.Error{Path: v.Path, Field: ggufMerges, Err: err}
	}
	return v.setMerges(ids, pairs)
}

// mergesFromScores: sentencepiece joins the two neighbours whose joint piece has the highest score, so every split of every piece into
// two pieces is a merge.
func (v *Vocabulary) mergesFromScores(f *gguf.File, ids map[string]int32) error {
	scores, err := f.Float32s(ggufScores)
	if err != nil {
		return err
	}
	if len(scores) != len(v.Pieces) {
		return v.fault(ggufScores, fmt.Sprintf("%d scores", len(scores)), fmt.Sprintf("%d as there are pieces", len(v.Pieces)), "")
	}
	for id, piece := range v.Pieces {
		if v.Kinds[id] != Normal {
			continue
		}
		for i := range piece {
			left, okLeft := ids[piece[:i]]
			right, okRight := ids[piece[i:]]
			if okLeft && okRight && v.Kinds[left] == Normal && v.Kinds[right] == Normal {
				v.Merges = append(v.Merges, Merge{left, right, int32(id)})
			}
		}
	}
	sort.SliceStable(v.Merges, func(a, b int) bool { return scores[v.Merges[a].Result] > scores[v.Merges[b].Result] })
	return nil
}

func (v *Vocabulary) ggufSettings(f *gguf.File) error {
	s := &v.Settings
	for _, k := range []struct {
		key string
		set func(id int)
	}{
		{ggufBOS, func(id int) { s.BOS = id }},
		{ggufUnknown, func(id int) { s.Unknown = id }},
		{ggufEOS, func(id int) { s.EOS = append(s.EOS, id) }},
		{ggufEOT, func(id int) { s.EOS = append(s.EOS, id) }},
	} {
		if !f.Has(k.key) {
			continue
		}
		id, err := f.Uint32(k.key)
		if err != nil {
			return err
		}
		k.set(int(id))
	}
	for id, p := range v.Pieces {
		if v.Kinds[id] == Control && slices.Contains(eosPieces, p) && !slices.Contains(s.EOS, id) {
			s.EOS = append(s.EOS, id)
		}
	}
	return v.ggufFlags(f)
}

// ggufFlags reads the switches; a file without them has sentencepiece's defaults for the name it gives its tokenizer.
func (v *Vocabulary) ggufFlags(f *gguf.File) error {
	name, err := f.Text(ggufModel)
	if err != nil {
		return err
	}
	pre := ""
	if f.Has(ggufPre) {
		if pre, err = f.Text(ggufPre); err != nil {
			return err
		}
	}
	addSpace, collapse := name == "llama" && pre != "gemma4", false
	v.Settings.AddBOS = true
	for _, k := range []struct {
		key  string
		flag *bool
	}{{ggufAddBOS, &v.Settings.AddBOS}, {ggufAddSpace, &addSpace}, {ggufWhitespace, &collapse}} {
		if !f.Has(k.key) {
			continue
		}
		if *k.flag, err = f.Flag(k.key); err != nil {
			return err
		}
	}
	if addSpace {
		v.Settings.Prefix = PrefixStart
	}
	v.Settings.CollapseSpaces = collapse
	if f.Has(ggufTemplate) {
		v.ChatTemplate, err = f.Text(ggufTemplate)
	}
	return err
}
