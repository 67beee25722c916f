package tokenizer

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Encode returns the ids of plain text. Whatever it contains, no control piece comes out. It fails only on text that is not UTF-8.
func (t *Tokenizer) Encode(text string) ([]int, error) { return t.encode(text, userDefinedOnly) }

// EncodeMarked is [Tokenizer.Encode] for text whose markers are meant: "<|turn>" becomes its id.
func (t *Tokenizer) EncodeMarked(text string) ([]int, error) { return t.encode(text, allMarkers) }

func (t *Tokenizer) encode(text string, which markers) ([]int, error) {
	if err := validUTF8(text); err != nil {
		return nil, err
	}
	e := t.pool.Get().(*encoder)
	defer t.pool.Put(e)
	e.out = e.out[:0]
	from := 0
	for from <= len(text) {
		m, found := t.next(text, from, which)
		if !found {
			m.lo = len(text)
		}
		e.section(text[from:m.lo], from == 0)
		if !found {
			break
		}
		e.out = append(e.out, int32(m.id))
		from = m.hi
	}
	ids := make([]int, len(e.out))
	for i, id := range e.out {
		ids[i] = int(id)
	}
	return ids, nil
}

// encoder is the scratch of one encoding.
type encoder struct {
	t       *Tokenizer
	out     []int32
	start   int // of the section in out
	symbols []int32
	merger  merger
	cache   map[string][]int32 // ids of segments seen before
	cached  int                // bytes of its keys
}

// Limits of the cache: natural words are short, and a cache that holds a language is a few megabytes.
const (
	longestCached = 48
	mostCached    = 4 << 20
)

// section encodes the text between two markers.
func (e *encoder) section(text string, first bool) {
	s := &e.t.v.Settings
	e.start = len(e.out)
	if s.CollapseSpaces {
		text = collapse(text)
	}
	if text != "" && (s.Prefix == PrefixAlways || s.Prefix == PrefixStart && first) && text[0] != ' ' {
		text = " " + text
	}
	from, before := 0, rune(-1)
	for i, c := range text {
		if before >= 0 && !e.t.near.has(before, c) {
			e.segment(text[from:i])
			from = i
		}
		before = c
	}
	if from < len(text) {
		e.segment(text[from:])
	}
}

// collapse leaves one space of a run, and none at the ends.
func collapse(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(c rune) bool { return c == ' ' }), " ")
}

// segment encodes text that no merge can cross the ends of.
func (e *encoder) segment(text string) {
	if ids, ok := e.cache[text]; ok {
		e.emit(ids)
		return
	}
	e.symbols = e.t.appendSymbols(e.symbols[:0], text)
	ids := e.merger.merge(e.t.pairs, e.symbols)
	e.emit(ids)
	if len(text) > longestCached {
		return
	}
	if e.cached += len(text); e.cached > mostCached {
		clear(e.cache)
		e.cached = len(text)
	}
	e.cache[strings.Clone(text)] = slices.Clone(ids)
}

// emit appends the ids of a segment. Where the vocabulary has no byte pieces, a run of unknown characters is one unknown.
func (e *encoder) emit(ids []int32) {
	unknown := int32(e.t.v.Settings.Unknown)
	if n := len(e.out); e.t.bytes[0] < 0 && n > e.start && e.out[n-1] == unknown && ids[0] == unknown {
		ids = ids[1:]
	}
	e.out = append(e.out, ids...)
}

// appendSymbols turns characters into the ids that merging starts from.
func (t *Tokenizer) appendSymbols(ids []int32, text string) []int32 {
	for i, c := range text {
		s := symbolOf(c)
		if int(s) < len(t.char) && t.char[s] >= 0 {
			ids = append(ids, t.char[s])
			continue
		}
		if t.bytes[0] < 0 {
			ids = append(ids, int32(t.v.Settings.Unknown))
			continue
		}
		n := utf8.RuneLen(c)
		for _, b := range []byte(text[i : i+n]) {
			ids = append(ids, t.bytes[b])
		}
	}
	return ids
}
