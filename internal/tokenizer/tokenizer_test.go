package tokenizer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"anelab/internal/shareddata"
)

// hand is a vocabulary for working by hand: markers, bytes, and
//
//	a b ab ba aba ▁ ▁▁ ▁a \n \n\n
//
// with the merges in the order of their results.
func hand(t testing.TB, s Settings) *Tokenizer {
	t.Helper()
	tok, err := New(handVocabulary(s))
	require.NoError(t, err)
	return tok
}

func handVocabulary(s Settings) *Vocabulary {
	v := &Vocabulary{Path: "hand", Settings: s}
	add := func(k Kind, pieces ...string) {
		for _, p := range pieces {
			v.Pieces, v.Kinds = append(v.Pieces, p), append(v.Kinds, k)
		}
	}
	add(Control, "<bos>", "<|turn>", "<turn|>")
	add(UserDefined, "<h1>", "<h")
	for b := range 256 {
		add(Byte, bytePiece(byte(b)))
	}
	add(Normal, "a", "b", "ab", "ba", "aba", "▁", "▁▁", "▁a", "\n", "\n\n")
	ids, err := v.index()
	if err != nil {
		panic(err)
	}
	for _, m := range [][2]string{{"a", "b"}, {"b", "a"}, {"a", "ba"}, {"ab", "a"}, {"▁", "▁"}, {"▁", "a"}, {"\n", "\n"}} {
		v.Merges = append(v.Merges, Merge{ids[m[0]], ids[m[1]], ids[m[0]+m[1]]})
	}
	return v
}

func bytePiece(b byte) string {
	const digits = "0123456789ABCDEF"
	return "<0x" + string(digits[b>>4]) + string(digits[b&15]) + ">"
}

// pieces spells the ids of a text.
func pieces(t testing.TB, tok *Tokenizer, encode func(string) ([]int, error), text string) string {
	t.Helper()
	ids, err := encode(text)
	require.NoError(t, err)
	var all []string
	for _, id := range ids {
		all = append(all, tok.Piece(id))
	}
	return strings.ReplaceAll(strings.Join(all, " "), "\n", "⏎")
}

func TestEncodeByHand(t *testing.T) { // hand
	none := Settings{BOS: 0, Unknown: -1}
	for name, c := range map[string]struct {
		settings Settings
		text     string
		want     string
	}{
		"empty":                            {none, "", ""},
		"lowest rank first":                {none, "bab", "b ab"},
		"leftmost of equals":               {none, "abab", "ab ab"},
		"a merge of a merge":               {none, "aba", "aba"},
		"spaces are pieces":                {none, "  a", "▁▁ a"},
		"one space":                        {none, "b a", "b ▁a"},
		"TOK-03 a run of the vocabulary":   {none, "a\n\nb", "a ⏎⏎ b"},
		"TOK-03 three, two at a time":      {none, "a\n\n\nb", "a ⏎⏎ ⏎ b"},
		"TOK-02 a character without piece": {none, "a€", "a <0xE2> <0x82> <0xAC>"},
		"TOK-09 no dummy prefix":           {none, " a", "▁a"},
		"TOK-09 spaces kept":               {none, "a  b", "a ▁▁ b"},
		"TOK-09 markers typed by a user":   {none, "<bos>a", "<0x3C> b <0x6F> <0x73> <0x3E> a"},
		"user-defined pieces always":       {none, "a<h1>b<h", "a <h1> b <h"},
		"TOK-09 dummy prefix":              {Settings{BOS: 0, Unknown: -1, Prefix: PrefixStart}, "a<h1>a", "▁a <h1> a"},
		"TOK-09 dummy prefix everywhere":   {Settings{BOS: 0, Unknown: -1, Prefix: PrefixAlways}, "a<h1>a", "▁a <h1> ▁a"},
		"TOK-09 a prefix that is there":    {Settings{BOS: 0, Unknown: -1, Prefix: PrefixStart}, " a", "▁a"},
		"TOK-09 extra spaces removed":      {Settings{BOS: 0, Unknown: -1, CollapseSpaces: true}, "  b   a ", "b ▁a"},
	} {
		t.Run(name, func(t *testing.T) {
			tok := hand(t, c.settings)
			require.Equal(t, c.want, pieces(t, tok, tok.Encode, c.text))
		})
	}
}

func TestEncodeMarkedByHand(t *testing.T) { // hand
	tok := hand(t, Settings{BOS: 0, Unknown: -1})
	require.Equal(t, "<bos> <|turn> ab <turn|> ⏎", pieces(t, tok, tok.EncodeMarked, "<bos><|turn>ab<turn|>\n"))
	require.Equal(t, "<0x3C> <0x7C> a", pieces(t, tok, tok.EncodeMarked, "<|a"))
	v := handVocabulary(Settings{BOS: 0, Unknown: -1})
	v.lstrip, v.rstrip = map[int]bool{1: true}, map[int]bool{2: true}
	tok, err := New(v)
	require.NoError(t, err)
	require.Equal(t, "a <|turn> ▁a <turn|> b", pieces(t, tok, tok.EncodeMarked, "a \n<|turn> a<turn|> \n b"))
}

// TestLongSegmentsMergeAsShortOnes holds the two ways of merging against each other.
func TestLongSegmentsMergeAsShortOnes(t *testing.T) { // invariant
	tok := small(t, "small.json")
	text, err := os.ReadFile(filepath.Join(shareddata.ModuleRoot(t), "testdata", "tokenizer", "mixed.txt"))
	require.NoError(t, err)
	for n := 1; n <= shortSegment; n++ {
		for from := 0; from+4*n < len(text); from += 97 {
			piece := strings.ToValidUTF8(string(text[from:from+n]), "")
			symbols := tok.appendSymbols(nil, piece)
			if len(symbols) == 0 || len(symbols) > shortSegment {
				continue
			}
			var m merger
			long := append([]int32(nil), m.mergeLong(tok.pairs, append([]int32(nil), symbols...))...)
			require.Equal(t, mergeShort(tok.pairs, symbols), long, "%q", piece)
		}
	}
}

// TestTOK04LongTextsWithoutABreak: a loop over all pairs for every merge would take hours for a megabyte, whatever the machine does besides.
func TestTOK04LongTextsWithoutABreak(t *testing.T) { // invariant
	tok := small(t, "small.json")
	for name, c := range map[string]struct {
		unit string
		n    int
	}{
		"one letter": {"a", 1 << 20}, "base64": {"QUJDREVGR0hJSktMTU5P", 1 << 20}, "newlines": {"\n", 1 << 18}, "spaces": {" ", 1 << 18},
		"no space": {"thewindowofthelayer", 1 << 18}, "unknown": {"\U0001F9FF", 1 << 18}, "nested": {"abba", 1 << 18},
	} {
		t.Run(name, func(t *testing.T) {
			text, start := strings.Repeat(c.unit, c.n/len(c.unit)), time.Now()
			require.True(t, text == roundTrip(t, tok, text))
			require.Less(t, time.Since(start), 30*time.Second)
		})
	}
	for _, n := range []int{0, 1, 100_000} {
		for _, unit := range []string{"a", "\n"} {
			require.Equal(t, strings.Repeat(unit, n), roundTrip(t, tok, strings.Repeat(unit, n)))
		}
	}
}

func TestTOK02StreamNeverSplitsACharacter(t *testing.T) { // hand
	tok := hand(t, Settings{BOS: 0, Unknown: -1})
	id := func(p string) int { return mustID(t, tok, p) }
	for name, c := range map[string]struct {
		pieces []string
		want   []string // of each push, then of the flush
	}{
		"euro":                    {[]string{"<0xE2>", "<0x82>", "<0xAC>"}, []string{"", "", "€", ""}},
		"held at the end":         {[]string{"a", "<0xE2>", "<0x82>"}, []string{"a", "", "", "\uFFFD\uFFFD"}},
		"broken by a letter":      {[]string{"<0xE2>", "a"}, []string{"", "\uFFFDa", ""}},
		"a byte that begins none": {[]string{"<0xFF>", "b"}, []string{"\uFFFD", "b", ""}},
		"a new one begins":        {[]string{"<0xE2>", "<0xC3>", "<0xA9>"}, []string{"", "\uFFFD", "é", ""}},
		"a marker between":        {[]string{"<0xC3>", "<turn|>", "<0xA9>"}, []string{"", "", "é", ""}},
		"space":                   {[]string{"▁a", "▁▁"}, []string{" a", "  ", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			s := tok.Stream(HideSpecials)
			var got []string
			for _, p := range c.pieces {
				got = append(got, s.Push(id(p)))
			}
			require.Equal(t, c.want, append(got, s.Flush()))
		})
	}
	require.Equal(t, "<|turn>a", tok.Decode([]int{id("<|turn>"), id("a")}, ShowSpecials))
	require.Equal(t, "a", tok.Decode([]int{id("<|turn>"), id("a")}, HideSpecials))
	require.PanicsWithValue(t, "tokenizer: id outside the vocabulary", func() { tok.Decode([]int{tok.Size()}, HideSpecials) })
	prefixed := hand(t, Settings{BOS: 0, Unknown: -1, Prefix: PrefixStart})
	require.Equal(t, "a a", prefixed.Decode([]int{id("▁a"), id("▁a")}, HideSpecials), "the dummy prefix goes again")
}

func TestCHAT06ExactlyOneBOS(t *testing.T) { // hand
	for name, c := range map[string]struct {
		addBOS bool
		turn   bool // the vocabulary is Gemma 4's
		ids    []int
		want   []int
	}{
		"empty raw prompt":                  {true, true, nil, []int{0}},
		"text":                              {true, true, []int{7, 8}, []int{0, 7, 8}},
		"rendered already":                  {true, true, []int{0, 7}, []int{0, 7}},
		"metadata says no, Gemma wants one": {false, true, []int{7}, []int{0, 7}},
		"another model, metadata says no":   {false, false, []int{7}, []int{7}},
		"another model, metadata says yes":  {true, false, []int{7}, []int{0, 7}},
	} {
		t.Run(name, func(t *testing.T) {
			v := handVocabulary(Settings{BOS: 0, Unknown: -1, AddBOS: c.addBOS})
			if !c.turn {
				v.Pieces[1] = "<|im_start|>"
			}
			tok, err := New(v)
			require.NoError(t, err)
			require.Equal(t, c.want, tok.Prompt(c.ids))
		})
	}
	v := handVocabulary(Settings{BOS: -1, Unknown: -1, AddBOS: true})
	tok, err := New(v)
	require.NoError(t, err)
	require.Equal(t, []int{7}, tok.Prompt([]int{7}), "there is none to add")
}

func TestInvalidUTF8IsRefused(t *testing.T) { // hand
	tok := hand(t, Settings{BOS: 0, Unknown: -1})
	_, err := tok.Encode("ab\xffb")
	require.ErrorContains(t, err, "byte 2: 0xFF, want UTF-8")
	_, err = tok.EncodeMarked("\uFFFD\xe2\x82")
	require.ErrorContains(t, err, "byte 3: 0xE2")
	ids, err := tok.Encode("\uFFFD")
	require.NoError(t, err)
	require.Len(t, ids, 3)
}

func TestNewRefuses(t *testing.T) { // hand
	for name, c := range map[string]struct {
		change func(*Vocabulary)
		want   string
	}{
		"nothing":               {func(v *Vocabulary) { v.Pieces, v.Kinds = nil, nil }, "0 pieces"},
		"kinds of another":      {func(v *Vocabulary) { v.Kinds = v.Kinds[1:] }, "pieces and"},
		"merge outside":         {func(v *Vocabulary) { v.Merges[3].Result = 1 << 20 }, "merge 3: id 1048576"},
		"bos outside":           {func(v *Vocabulary) { v.Settings.BOS = 1 << 20 }, "special token: id 1048576"},
		"a piece twice":         {func(v *Vocabulary) { v.Pieces[261] = "b" }, `"b" as 261 and as 262`},
		"piece is no UTF-8":     {func(v *Vocabulary) { v.Pieces[261] = "\xff" }, "piece 261"},
		"255 byte pieces":       {func(v *Vocabulary) { v.Kinds[7] = Unused }, "255 byte pieces"},
		"byte piece ill formed": {func(v *Vocabulary) { v.Pieces[7] = "<0xGG>" }, "piece 7"},
		"no way to write all": {func(v *Vocabulary) {
			for id, k := range v.Kinds {
				if k == Byte {
					v.Kinds[id] = Unused
				}
			}
		}, "neither byte pieces"},
	} {
		t.Run(name, func(t *testing.T) {
			v := handVocabulary(Settings{BOS: 0, Unknown: -1})
			c.change(v)
			_, err := New(v)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "hand: ")
		})
	}
}

// TestUnknownRunsAreOne: without byte pieces a run of characters without a piece is one unknown.
func TestUnknownRunsAreOne(t *testing.T) { // hand
	v := handVocabulary(Settings{BOS: 0, Unknown: 2})
	for id, k := range v.Kinds {
		if k == Byte {
			v.Kinds[id] = Unused
		}
	}
	tok, err := New(v)
	require.NoError(t, err)
	require.Equal(t, "a <turn|> b <turn|>", pieces(t, tok, tok.Encode, "a€€xb€"))
}

func TestMatches(t *testing.T) { // hand
	tok := hand(t, Settings{BOS: 0, Unknown: -1})
	require.NoError(t, tok.Matches(271))
	require.ErrorContains(t, tok.Matches(320), "271 pieces, want 320, the rows of the model's embedding; take the tokenizer of the same model")
}

// FuzzRoundTrip: every valid text without ▁ comes back, whole and id by id.
func FuzzRoundTrip(f *testing.F) {
	for _, c := range vectors(f) {
		if len(c.Text) < 1000 {
			f.Add(c.Text)
		}
	}
	toks := []*Tokenizer{small(f, "small.json"), small(f, "tiny-e2b.json")}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) || strings.ContainsRune(text, space) {
			return
		}
		for _, tok := range toks {
			require.Equal(t, text, roundTrip(t, tok, text))
			ids, err := tok.EncodeMarked(text)
			require.NoError(t, err)
			s, got := tok.Stream(ShowSpecials), ""
			for _, id := range ids {
				part := s.Push(id)
				require.True(t, utf8.ValidString(part))
				got += part
			}
			require.Equal(t, text, got+s.Flush())
		}
	})
}

// mixed is n bytes of every script and habit of mixed.txt, its lines in a changing order.
func mixed(t testing.TB, n int) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(shareddata.ModuleRoot(t), "testdata", "tokenizer", "mixed.txt"))
	require.NoError(t, err)
	lines := strings.SplitAfter(string(text), "\n")
	var b strings.Builder
	for x := uint32(1); b.Len() < n; x = x*1664525 + 1013904223 {
		line := lines[x>>8%uint32(len(lines))]
		cut := int(x>>4) % (len(line) + 1)
		for cut < len(line) && !utf8.RuneStart(line[cut]) {
			cut++
		}
		b.WriteString(line[cut:])
		b.WriteRune(rune(0x20 + x>>11%0xD000)) // any character below the surrogates
	}
	return strings.ReplaceAll(b.String(), "▁", "_")
}

func TestRoundTripOf10MB(t *testing.T) { // invariant
	text := mixed(t, 10_000_000)
	start := time.Now()
	require.True(t, text == roundTrip(t, small(t, "small.json"), text))
	t.Logf("there and back at %.1f MB/s", float64(len(text))/1e6/time.Since(start).Seconds())
}

func TestRoundTripOf10MBWithTheFullVocabulary(t *testing.T) { // invariant
	tok := gemma(t)
	text := mixed(t, 10_000_000)
	start := time.Now()
	require.True(t, text == roundTrip(t, tok, text))
	t.Logf("there and back at %.1f MB/s", float64(len(text))/1e6/time.Since(start).Seconds())
}

func BenchmarkEncode(b *testing.B) {
	for name, tok := range map[string]func(testing.TB) *Tokenizer{"small": func(t testing.TB) *Tokenizer { return small(t, "small.json") }, "gemma4": gemma} {
		for kind, text := range map[string]string{"mixed": mixed(b, 1<<20), "letters": strings.Repeat("a", 1<<20), "newlines": strings.Repeat("\n", 1<<20)} {
			b.Run("vocabulary="+name+"/text="+kind, func(b *testing.B) {
				t := tok(b)
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					if _, err := t.Encode(text); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
