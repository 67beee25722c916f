package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"anelab/internal/format"
)

// file mirrors the parts of tokenizer.json that decide about ids.
type file struct {
	Model         model           `json:"model"`
	Added         []addedToken    `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
}

type model struct {
	Type         string           `json:"type"`
	Vocab        map[string]int32 `json:"vocab"`
	Merges       merges           `json:"merges"`
	UnknownToken *string          `json:"unk_token"`
	ByteFallback bool             `json:"byte_fallback"`
	IgnoreMerges bool             `json:"ignore_merges"`
	Dropout      *float64         `json:"dropout"`
	WordPrefix   *string          `json:"continuing_subword_prefix"`
	WordSuffix   *string          `json:"end_of_word_suffix"`
}

type addedToken struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	Special    bool   `json:"special"`
	Normalized bool   `json:"normalized"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	SingleWord bool   `json:"single_word"`
}

// merges are written as "a b" in older files, as ["a", "b"] in newer ones.
type merges [][2]string

// UnmarshalJSON reads both forms.
func (m *merges) UnmarshalJSON(data []byte) error {
	var pairs [][]string
	if json.Unmarshal(data, &pairs) == nil {
		*m = make(merges, len(pairs))
		for i, p := range pairs {
			if len(p) != 2 {
				return fmt.Errorf("merge %d has %d pieces", i, len(p))
			}
			(*m)[i] = [2]string(p)
		}
		return nil
	}
	var lines []string
	if err := json.Unmarshal(data, &lines); err != nil {
		return err
	}
	var err error
	*m, err = splitMerges(lines)
	return err
}

// splitMerges takes "a b" apart. Pieces have no spaces, so there is exactly one.
func splitMerges(lines []string) (merges, error) {
	m := make(merges, len(lines))
	for i, line := range lines {
		left, right, ok := strings.Cut(line, " ")
		if !ok || left == "" || right == "" || strings.Contains(right, " ") {
			return nil, fmt.Errorf("merge %d is %q, want two pieces and a space", i, clip(line))
		}
		m[i] = [2]string{left, right}
	}
	return m, nil
}

// ParseJSON reads a tokenizer.json of the byte-fallback BPE kind; path is used in errors. What it cannot honour it refuses by name: a
// normaliser that is skipped gives other ids without a word.
func ParseJSON(path string, data []byte) (*Vocabulary, error) {
	var f file
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&f); err != nil {
		return nil, &format.Error{Path: path, Got: "no tokenizer", Err: err, Fix: "is this a tokenizer.json?"}
	}
	v := &Vocabulary{Path: path, Settings: Settings{BOS: -1, Unknown: -1}, lstrip: map[int]bool{}, rstrip: map[int]bool{}}
	for _, step := range []func(*file) error{v.checkModel, v.number, v.addAdded, v.resolveMerges, v.readNormalizer, v.readPreTokenizer, v.readDecoder, v.findSpecials} {
		if err := step(&f); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// checkModel refuses other algorithms.
func (v *Vocabulary) checkModel(f *file) error {
	m := &f.Model
	switch {
	case m.Type != "BPE" && !(m.Type == "" && len(m.Merges) > 0):
		return v.fault("model.type", fmt.Sprintf("%q", m.Type), `"BPE"`, "Gemma's tokenizer is BPE; is this file of another model?")
	case m.IgnoreMerges:
		return v.fault("model.ignore_merges", "true", "false", "")
	case m.Dropout != nil && *m.Dropout != 0:
		return v.fault("model.dropout", fmt.Sprint(*m.Dropout), "null", "dropout is for training")
	case m.WordPrefix != nil && *m.WordPrefix != "", m.WordSuffix != nil && *m.WordSuffix != "":
		return v.fault("model", "prefixes or suffixes of words", "none", "")
	}
	return nil
}

// number puts every piece at its id. Ids must be 0 to n−1: a gap would be a row of the embedding that nothing names.
func (v *Vocabulary) number(f *file) error {
	n := len(f.Model.Vocab)
	for _, a := range f.Added {
		if _, ok := f.Model.Vocab[a.Content]; !ok {
			n++
		}
	}
	if n > mostPieces {
		return v.fault("model.vocab", fmt.Sprintf("%d pieces", n), fmt.Sprintf("at most %d", mostPieces), "")
	}
	v.Pieces, v.Kinds = make([]string, n), make([]Kind, n)
	taken := make([]bool, n)
	place := func(piece string, id int) error {
		if id < 0 || id >= n || taken[id] && v.Pieces[id] != piece {
			return v.fault("model.vocab", fmt.Sprintf("%q with id %d", clip(piece), id), fmt.Sprintf("every id from 0 to %d once", n-1), "")
		}
		taken[id], v.Pieces[id] = true, piece
		return nil
	}
	for piece, id := range f.Model.Vocab {
		if err := place(piece, int(id)); err != nil {
			return err
		}
		if _, ok := byteValue(piece); ok && f.Model.ByteFallback {
			v.Kinds[id] = Byte
		} else if isMarker(piece) {
			v.Kinds[id] = Control
		}
	}
	for _, a := range f.Added {
		if id, ok := f.Model.Vocab[a.Content]; ok && int(id) != a.ID {
			return v.fault("added_tokens", fmt.Sprintf("%q with id %d", clip(a.Content), a.ID), fmt.Sprintf("id %d as in the vocabulary", id), "")
		}
		if err := place(a.Content, a.ID); err != nil {
			return err
		}
	}
	return nil
}

// addAdded marks the pieces that are matched, not merged.
func (v *Vocabulary) addAdded(f *file) error {
	for _, a := range f.Added {
		switch {
		case a.Content == "":
			return v.fault("added_tokens", fmt.Sprintf("an empty token %d", a.ID), "some text", "")
		case a.SingleWord:
			return v.fault("added_tokens", fmt.Sprintf("%q with single_word", clip(a.Content)), "single_word false", "")
		case a.Special || isMarker(a.Content):
			v.Kinds[a.ID] = Control
		default:
			v.Kinds[a.ID] = UserDefined
			if a.Normalized {
				v.Pieces[a.ID] = strings.ReplaceAll(a.Content, string(space), " ")
			}
		}
		v.lstrip[a.ID], v.rstrip[a.ID] = a.LStrip, a.RStrip
	}
	return nil
}

// resolveMerges turns pairs of pieces into pairs of ids.
func (v *Vocabulary) resolveMerges(f *file) error { return v.setMerges(f.Model.Vocab, f.Model.Merges) }

func (v *Vocabulary) setMerges(ids map[string]int32, pairs merges) error {
	v.Merges = make([]Merge, len(pairs))
	for rank, p := range pairs {
		var err error
		if v.Merges[rank], err = v.pairOf(ids, rank, p[0], p[1]); err != nil {
			return err
		}
	}
	return nil
}

// eosPieces end a generation where they are control pieces: Gemma's own names.
var eosPieces = []string{"<eos>", "<turn|>", "<end_of_turn>"}

// findSpecials finds what the frame of a text needs.
func (v *Vocabulary) findSpecials(f *file) error {
	if u := f.Model.UnknownToken; u != nil {
		v.Settings.Unknown = slices.Index(v.Pieces, *u)
	}
	for id, p := range v.Pieces {
		switch {
		case v.Kinds[id] != Control:
		case p == "<bos>":
			v.Settings.BOS = id
			v.Settings.AddBOS = bytes.Contains(f.PostProcessor, []byte(`"<bos>"`))
		case slices.Contains(eosPieces, p):
			v.Settings.EOS = append(v.Settings.EOS, id)
		}
	}
	return nil
}
