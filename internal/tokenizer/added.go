package tokenizer

import (
	"slices"
	"strings"
	"unicode"
)

// indexAdded lists the pieces that are matched in text, not merged.
func (t *Tokenizer) indexAdded() {
	for id, p := range t.v.Pieces {
		switch k := t.v.Kinds[id]; {
		case p == "":
		case k == UserDefined:
			t.added[userDefinedOnly][p[0]] = append(t.added[userDefinedOnly][p[0]], int32(id))
			fallthrough
		case k == Control:
			t.added[allMarkers][p[0]] = append(t.added[allMarkers][p[0]], int32(id))
		}
	}
	for _, which := range t.added {
		for _, list := range which {
			slices.SortStableFunc(list, func(a, b int32) int { return len(t.v.Pieces[b]) - len(t.v.Pieces[a]) })
		}
	}
}

// markers says which pieces are matched.
type markers uint8

const (
	userDefinedOnly markers = iota
	allMarkers
)

// match is a piece found in text, and the bytes it takes.
type match struct {
	id     int
	lo, hi int
}

// next finds the first marker of text at or after from, the longest where several begin.
func (t *Tokenizer) next(text string, from int, which markers) (match, bool) {
	for i := from; i < len(text); i++ {
		for _, id := range t.added[which][text[i]] {
			if p := t.v.Pieces[id]; strings.HasPrefix(text[i:], p) {
				return t.stripped(text, match{int(id), i, i + len(p)}, from), true
			}
		}
	}
	return match{}, false
}

// stripped lets the marker take white space along where the file says so.
func (t *Tokenizer) stripped(text string, m match, from int) match {
	if t.v.lstrip[m.id] {
		m.lo = from + len(strings.TrimRightFunc(text[from:m.lo], unicode.IsSpace))
	}
	if t.v.rstrip[m.id] {
		m.hi = len(text) - len(strings.TrimLeftFunc(text[m.hi:], unicode.IsSpace))
	}
	return m
}
