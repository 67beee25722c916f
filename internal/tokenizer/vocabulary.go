package tokenizer

import (
	"fmt"
	"slices"
	"strings"

	"anelab/internal/format"
)

// Kind says how a piece comes from text and goes back to it.
type Kind uint8

// Kinds of pieces.
const (
	Normal      Kind = iota // made by merging
	Byte                    // <0xE2>: one byte of UTF-8
	Control                 // a marker: never made from plain text, hidden when decoding
	UserDefined             // taken from any text before merging
	Unused                  // an id without a meaning
)

// Merge joins two neighbouring pieces to a third.
type Merge struct{ Left, Right, Result int32 }

// Prefix says where a space is put before the text.
type Prefix uint8

// Prefixes. Gemma has none.
const (
	NoPrefix     Prefix = iota
	PrefixStart         // at the start of the text
	PrefixAlways        // at the start of every section between markers
)

// Settings are what the file says about the text around the pieces.
type Settings struct {
	Prefix         Prefix
	CollapseSpaces bool // runs of spaces count as one, those at the ends as none
	AddBOS         bool
	BOS, Unknown   int   // ids; −1 = none
	EOS            []int // ids that end a generation
}

// Vocabulary is what a file says: everything that decides about ids.
type Vocabulary struct {
	Path         string
	Pieces       []string // [V]
	Kinds        []Kind   // [V]
	Merges       []Merge  // by rank, lowest first
	Settings     Settings
	ChatTemplate string // "" = the file has none

	lstrip, rstrip map[int]bool // markers that take the white space beside them along
}

// space is how pieces write a space.
const space = '▁'

// mostPieces is far above any published vocabulary.
const mostPieces = 1 << 22

// frame are the markers of Gemma's generations that do not have the form of Gemma 4's.
var frame = []string{"<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<start_of_turn>", "<end_of_turn>"}

// isMarker reports whether a piece is a marker by its name: one of the frame, or of Gemma 4's form, <|turn>, <turn|>, <|"|>. Files list some of
// them as user-defined, and conversions have lost their types altogether; taken from plain text they would let a user write into the
// frame of the conversation, and made by merging they would be in pieces.
func isMarker(piece string) bool {
	if slices.Contains(frame, piece) {
		return true
	}
	return len(piece) > 3 && piece[0] == '<' && piece[len(piece)-1] == '>' && (piece[1] == '|' || piece[len(piece)-2] == '|')
}

// byteValue reads <0xE2>.
func byteValue(piece string) (b byte, ok bool) {
	if len(piece) != 6 || !strings.HasPrefix(piece, "<0x") || piece[5] != '>' {
		return 0, false
	}
	for _, c := range []byte(piece[3:5]) {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		default:
			return 0, false
		}
		b = b<<4 | c
	}
	return b, true
}

// fault is an error about the vocabulary.
func (v *Vocabulary) fault(field, got, want, fix string) error {
	return &format.Error{Path: v.Path, Field: field, Got: got, Want: want, Fix: fix}
}

// index maps pieces to ids.
func (v *Vocabulary) index() (map[string]int32, error) {
	ids := make(map[string]int32, len(v.Pieces))
	for id, p := range v.Pieces {
		if v.Kinds[id] == Unused {
			continue
		}
		if other, twice := ids[p]; twice {
			return nil, v.fault("vocabulary", fmt.Sprintf("%q as %d and as %d", clip(p), other, id), "every piece once", "")
		}
		ids[p] = int32(id)
	}
	return ids, nil
}

// pairOf resolves a merge that is written as two pieces.
func (v *Vocabulary) pairOf(ids map[string]int32, rank int, left, right string) (Merge, error) {
	m := Merge{Left: -1, Right: -1, Result: -1}
	for _, part := range []struct {
		piece string
		id    *int32
	}{{left, &m.Left}, {right, &m.Right}, {left + right, &m.Result}} {
		id, ok := ids[part.piece]
		if !ok {
			return m, v.fault(fmt.Sprintf("merge %d", rank), fmt.Sprintf("%q", clip(part.piece)), "a piece of the vocabulary", "merges and vocabulary are of different models")
		}
		*part.id = id
	}
	return m, nil
}

// clip shortens text for a message.
func clip(s string) string {
	const most = 40
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
