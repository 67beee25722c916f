package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"anelab/internal/format"
)

// Tokenizer turns text into ids and back. Safe for concurrent use.
type Tokenizer struct {
	v     *Vocabulary
	ids   map[string]int32
	char  []int32    // id by character, up to the greatest that is a piece; −1 = none
	bytes [256]int32 // id by byte
	pairs *pairTable
	near  *neighbours
	added [2][256][]int32 // pieces that are matched in text, by markers and first byte, longest first
	text  []string        // [V] what an id decodes to; control pieces as they are written
	pool  sync.Pool       // of *encoder
}

// New makes a vocabulary ready for use. It takes v over.
func New(v *Vocabulary) (*Tokenizer, error) {
	if err := v.check(); err != nil {
		return nil, err
	}
	ids, err := v.index()
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{v: v, ids: ids, pairs: newPairTable(len(v.Merges)), near: newNeighbours(v), text: make([]string, len(v.Pieces))}
	t.pool.New = func() any { return &encoder{t: t, cache: map[string][]int32{}} }
	for rank, m := range v.Merges {
		if v.Kinds[m.Result] == Normal {
			t.pairs.add(m.Left, m.Right, merged{int32(rank), m.Result})
		}
	}
	t.indexCharacters()
	if err := t.indexBytes(); err != nil {
		return nil, err
	}
	t.indexAdded()
	return t, nil
}

// check makes sure that everything inside the vocabulary refers to something.
func (v *Vocabulary) check() error {
	n := len(v.Pieces)
	if n == 0 || n > mostPieces || len(v.Kinds) != n {
		return v.fault("vocabulary", fmt.Sprintf("%d pieces and %d kinds", n, len(v.Kinds)), fmt.Sprintf("1 to %d of both", mostPieces), "")
	}
	for i, m := range v.Merges {
		for _, id := range []int32{m.Left, m.Right, m.Result} {
			if id < 0 || int(id) >= n {
				return v.fault(fmt.Sprintf("merge %d", i), fmt.Sprintf("id %d", id), fmt.Sprintf("0 to %d", n-1), "")
			}
		}
	}
	for _, id := range append([]int{v.Settings.BOS, v.Settings.Unknown}, v.Settings.EOS...) {
		if id < -1 || id >= n {
			return v.fault("special token", fmt.Sprintf("id %d", id), fmt.Sprintf("0 to %d", n-1), "vocabulary and settings are of different models")
		}
	}
	for id, p := range v.Pieces {
		if !utf8.ValidString(p) {
			return v.fault(fmt.Sprintf("piece %d", id), fmt.Sprintf("%q", clip(p)), "UTF-8", "")
		}
	}
	return nil
}

// indexCharacters finds the pieces of one character, and what every piece decodes to.
func (t *Tokenizer) indexCharacters() {
	for id, p := range t.v.Pieces {
		switch t.v.Kinds[id] {
		case Normal:
			t.text[id] = strings.ReplaceAll(p, string(space), " ")
			if c, n := utf8.DecodeRuneInString(p); n > 0 && n == len(p) {
				for int(c) >= len(t.char) {
					t.char = append(t.char, slices.Repeat([]int32{-1}, int(c)+1-len(t.char))...)
				}
				t.char[c] = int32(id)
			}
		case Control, UserDefined:
			t.text[id] = p
		}
	}
}

// indexBytes finds the byte pieces. All or none: with some, text would be lost byte by byte.
func (t *Tokenizer) indexBytes() error {
	found := 0
	for i := range t.bytes {
		t.bytes[i] = -1
	}
	for id, p := range t.v.Pieces {
		if t.v.Kinds[id] != Byte {
			continue
		}
		b, ok := byteValue(p)
		if !ok {
			return t.v.fault(fmt.Sprintf("piece %d", id), fmt.Sprintf("%q", clip(p)), "a byte piece such as <0xE2>", "")
		}
		if t.bytes[b] < 0 {
			found++
		}
		t.bytes[b], t.text[id] = int32(id), string([]byte{b})
	}
	if found != 0 && found != 256 {
		return t.v.fault("vocabulary", fmt.Sprintf("%d byte pieces", found), "256, or none", "")
	}
	if found == 0 && t.v.Settings.Unknown < 0 {
		return t.v.fault("vocabulary", "neither byte pieces nor one for the unknown", "a way to write any character", "")
	}
	return nil
}

// ID is the id of a piece.
func (t *Tokenizer) ID(piece string) (id int, ok bool) {
	i, ok := t.ids[piece]
	return int(i), ok
}

// Marker is the id of a control piece.
func (t *Tokenizer) Marker(piece string) (id int, ok bool) {
	id, ok = t.ID(piece)
	return id, ok && t.v.Kinds[id] == Control
}

// Piece is the piece of an id as the vocabulary writes it; "" for an id it does not have.
func (t *Tokenizer) Piece(id int) string {
	if id < 0 || id >= len(t.v.Pieces) {
		return ""
	}
	return t.v.Pieces[id]
}

// Size is the number of ids.
func (t *Tokenizer) Size() int { return len(t.v.Pieces) }

// Path is where the vocabulary comes from.
func (t *Tokenizer) Path() string { return t.v.Path }

// Settings are what the file says about the text around the pieces.
func (t *Tokenizer) Settings() Settings { return t.v.Settings }

// ChatTemplate is the template that came with the vocabulary; "" = none.
func (t *Tokenizer) ChatTemplate() string { return t.v.ChatTemplate }

// Matches refuses a vocabulary that is not the one of an embedding with so many rows.
func (t *Tokenizer) Matches(rows int) error {
	if t.Size() == rows {
		return nil
	}
	return t.v.fault("vocabulary", fmt.Sprintf("%d pieces", t.Size()), fmt.Sprintf("%d, the rows of the model's embedding", rows),
		"take the tokenizer of the same model")
}

// Prompt is the ids of a text that begins a sequence: with exactly one <bos> in front where the model has one.
func (t *Tokenizer) Prompt(ids []int) []int {
	if !t.startsWithBOS() || len(ids) > 0 && ids[0] == t.v.Settings.BOS {
		return ids
	}
	return append([]int{t.v.Settings.BOS}, ids...)
}

// startsWithBOS: Gemma 4 was trained with <bos> in front of everything, and files of it that say otherwise leave it to the chat template.
func (t *Tokenizer) startsWithBOS() bool {
	_, gemma := t.Marker("<|turn>")
	return t.v.Settings.BOS >= 0 && (gemma || t.v.Settings.AddBOS)
}

// validUTF8 finds the first byte that is none.
func validUTF8(text string) error {
	if utf8.ValidString(text) {
		return nil
	}
	for i, c := range text {
		if c == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD") {
			return &format.Error{Path: "text", Field: fmt.Sprintf("byte %d", i), Got: fmt.Sprintf("0x%02X", text[i]), Want: "UTF-8", Fix: "convert the text to UTF-8 first"}
		}
	}
	panic("tokenizer: invalid text without an invalid byte")
}
