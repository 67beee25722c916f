package chunking

import (
	"bytes"
	"encoding/csv"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab"
	"anelab/internal/format"
	"anelab/quant"
)

func TestParse(t *testing.T) { // hand
	m := published(t, "e2b")
	int8, err := quant.ParseEncoding("int8g32")
	require.NoError(t, err)
	for _, c := range []struct {
		text      string
		want      Layout
		canonical string
	}{
		{"L0-7 | L8-24 | L25-34+head", cuts(m, 0, 8, 25), "L0-7 | L8-24 | L25-34+head"},
		{"0-7|8-14|15-24|25-34+head", cuts(m, 0, 8, 15, 25), "L0-7 | L8-14 | L15-24 | L25-34+head"},
		{"\tl0-L33 |\n 34+head ", cuts(m, 0, 34), "L0-33 | L34+head"},
		{"L0-34 | head", Layout{Cuts: []Cut{{Lo: 0, Hi: 35}, {Lo: 35, Hi: 35, Head: true}}}, "L0-34 | head"},
		{"L0 w=int8g32 | L1-34 kv=fp16 | head w=f16",
			Layout{Cuts: []Cut{{Hi: 1, Weights: int8}, {Lo: 1, Hi: 35}, {Lo: 35, Hi: 35, Head: true, Weights: quant.DenseF16}}},
			"L0 w=int8g32 | L1-34 | head w=f16"},
		{"L0-34+head attn=sliding:2048 @9 attn=full context=8192 tokens=3",
			Layout{Cuts: cuts(m, 0).Cuts, Context: 8192, QueryTokens: 3, Attn: []LayerAttn{{-1, "sliding:2048"}, {9, "full"}}},
			"L0-34+head attn=sliding:2048 @9 attn=full context=8192 tokens=3"},
		{"@4way", cuts(m, 0, 8, 15, 25), "L0-7 | L8-14 | L15-24 | L25-34+head"},
		{"@3way", cuts(m, 0, 8, 25), "L0-7 | L8-24 | L25-34+head"},
		{"@topo1", cuts(m, 0, 15, 25), "L0-14 | L15-24 | L25-34+head"},
		{"@2way", cuts(m, 0, 15), "L0-14 | L15-34+head"},
		{"@1way", cuts(m, 0), "L0-34+head"},
		{"@1way weights=f16", Layout{Cuts: []Cut{{Hi: 35, Head: true, Weights: quant.DenseF16}}}, "L0-34+head w=f16"},
		{"@2way w=f16 context=512",
			Layout{Context: 512, Cuts: []Cut{{Hi: 15, Weights: quant.DenseF16}, {Lo: 15, Hi: 35, Head: true, Weights: quant.DenseF16}}},
			"L0-14 w=f16 | L15-34+head w=f16 context=512"},
	} {
		t.Run(c.text, func(t *testing.T) {
			got, err := Parse(c.text, m)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			require.Equal(t, c.canonical, got.String())
		})
	}
}

func TestPresetsOfOtherModels(t *testing.T) {
	for _, c := range []struct{ model, preset, want string }{
		{"e4b", "@4way", "L0-11 | L12-23 | L24-32 | L33-41+head"}, // spec forward.md §4.0
		{"e4b", "@3way", "L0-11 | L12-32 | L33-41+head"},
		{"31b", "@4way", "L0-14 | L15-29 | L30-44 | L45-59+head"}, // nothing is shared: equal counts
		{"31b", "@3way", "L0-19 | L20-39 | L40-59+head"},
		{"31b", "@topo1", "L0-19 | L20-39 | L40-59+head"},
		{"31b", "@1way", "L0-59+head"},
	} {
		l, err := Parse(c.preset, published(t, c.model))
		require.NoError(t, err)
		require.Equal(t, c.want, l.String(), "%s of %s", c.preset, c.model)
	}
	for _, p := range Presets() {
		require.NotEmpty(t, p.Description)
		require.NotEmpty(t, p.Source)
		_, ok := published(t, "e2b").Preset(p.Name)
		require.True(t, ok)
	}
}

// Each fault of layout text: what is said, and the character under the caret. hand
func TestParseFaults(t *testing.T) {
	m := published(t, "e2b")
	const mark = "‸" // stands before the character at fault; not part of the text
	for _, c := range []struct {
		name, text, message string
		rule                Rule
	}{
		{"overlap", "L0-9 | ‸L9-34", "layer 9 is in two chunks; take it out of chunk 1 or 2", RuleOverlap},
		{"overlap of three", "L0-9 | L10-34 | ‸L3-4+head", "layer 3 is in two chunks; take it out of chunk 1 or 3", RuleOverlap},
		{"gap", "L0-7 | ‸L9-34+head", "layer 8 is in no chunk; every layer", RuleGap},
		{"gap of several", "L0-7 | ‸L12-34+head", "layers 8 to 11 are in no chunk", RuleGap},
		{"gap at the beginning", "‸L1-34+head", "layer 0 is in no chunk", RuleGap},
		{"gap at the end", "L0-7 | ‸L8-33+head", "layer 34 is in no chunk", RuleGap},
		{"reversed", "L0-7 | ‸L24-8 | L25-34+head", "L24-8 runs backwards; write L8-24", ""},
		{"past the end", "L0-7 | L8-‸35+head", "layer 35 does not exist; the model's last layer is 34", RuleRange},
		{"far past the end", "L0-7 | ‸L50-60+head", "layer 50 does not exist", RuleRange},
		{"huge", "L0-7 | L8-‸99999999999999999999+head", "layer 99999999999999999999 does not exist", ""},
		{"no head", "L0-7 | L8-34‸", "no chunk has the head; add +head to the last chunk", RuleHead},
		{"head first", "L0-7‸+head | L8-34", "the head is in chunk 1 of 2", RuleHead},
		{"two heads", "L0-7‸+head | L8-34+head", "the head is in chunk 1 of 2", RuleHead},
		{"head alone first", "‸head | L0-34", "the head is in chunk 1 of 2", RuleHead},
		{"donor later", "‸L15-34 | L0-14+head", "chunk 1 reads keys and values of layer 13, which comes later, in chunk 2", RuleDonor},
		{"out of order", "‸L8-14 | L0-7 | L15-34+head", "chunk 1 begins at layer 8, but layer 0 comes next", RuleOrder},
		{"empty chunk", "L0-7 | ‸| L8-34+head", "chunk 2 is empty", ""},
		{"missing bar", "L0-7 ‸L8-34+head", `write "|" between chunks`, ""},
		{"trailing bar", "L0-34+head |‸", "chunk 2 is empty", ""},
		{"nothing", "‸", "nothing, want chunks or a preset", ""},
		{"typo in head", "L0-34‸+haed", `"+haed", want "+head"; did you mean "+head"?`, ""},
		{"not layers", "‸chunk1 | L8-34+head", `"chunk1", want layers such as L0-7`, ""},
		{"open range", "L0-‸ | L8-34+head", `"L0-", want layers such as L0-7`, ""},
		{"negative", "‸-1-7 | L8-34+head", `"-1-7", want layers`, ""},
		{"en dash", "‸L0–7 | L8-34+head", `write "-" between the layers`, ""},
		{"typo in preset", "‸@3wya", `unknown preset "@3wya"; did you mean "@3way"?`, ""},
		{"preset in a list", "‸@3way | L25-34+head", `"@3way", want layers`, ""},
		{"typo in a setting", "L0-34+head ‸wieghts=f16", `unknown setting "wieghts=f16"; did you mean "weights"?`, ""},
		{"typo in context", "L0-34+head ‸contxt=512", `did you mean "context"?`, ""},
		{"no value", "L0-34+head ‸context", `"context", want context=VALUE`, ""},
		{"unknown encoding", "L0-7 w=‸fp16 | L8-34+head", `did you mean "f16"?`, ""},
		{"five bits", "L0-34+head w=‸int5", "Core ML has no palette of 5 bits", ""},
		{"twice", "L0-34+head w=f16 ‸w=f32", "w is given twice; keep one", ""},
		{"context twice", "L0-34+head context=512 ‸context=512", "context is given twice", ""},
		{"too early", "L0-7 ‸context=512 | L8-34+head", "before the last chunk; it is for the whole layout", ""},
		{"layer setting too early", "L0-7 ‸@3 attn=full | L8-34+head", "before the last chunk", ""},
		{"context 0", "L0-34+head context=‸0", "context=0, want 1 to 1048576", ""},
		{"context with a sign", "L0-34+head context=‸-512", "want 1 to 1048576", ""},
		{"huge context", "L0-34+head context=‸18446744073709551616", "want 1 to 1048576", ""},
		{"tokens above context", "L0-34+head context=2 tokens=‸3", "3 query tokens; choose 1 to 2", RuleTokens},
		{"state", "L0-34+head kv=‸state", "caches in Core ML states are not planned yet", ""},
		{"typo in kv", "L0-34+head kv=‸explict", `did you mean "explicit"?`, ""},
		{"typo in a policy", "L0-34+head attn=‸slidng:512", `did you mean "sliding"?`, ""},
		{"window 0", "L0-34+head attn=‸sliding:0", "the form of sliding:512", ""},
		{"policy of no layer", "L0-34+head @35 attn=‸full", "layer 35 does not exist", RuleAttn},
		{"two policies", "L0-34+head @9 attn=full @9 ‸attn=full", "attn is given twice", ""},
		{"selector alone", "L0-34+head ‸@9", "@9 without attn=", ""},
		{"selector for context", "L0-34+head ‸@9 context=512", "@9 without attn=", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, after, ok := strings.Cut(c.text, mark)
			require.True(t, ok)
			_, err := Parse(before+after, m)
			var e *ParseError
			require.ErrorAs(t, err, &e)
			require.Contains(t, err.Error(), c.message)
			require.Equal(t, c.rule, e.Rule)
			require.Equal(t, len([]rune(before))+1, e.Column)
			var fault *format.Error
			require.True(t, errors.As(err, &fault))
			require.Equal(t, "layout", fault.Path)
		})
	}
}

func TestParseErrorText(t *testing.T) { // hand
	m := published(t, "e2b")
	_, err := Parse("L0-9 | L9-34", m)
	require.EqualError(t, err, `layout "L0-9 | L9-34": layer 9 is in two chunks; take it out of chunk 1 or 2`)
	var e *ParseError
	require.ErrorAs(t, err, &e)
	require.Equal(t, "   L0-9 | L9-34\n          ^", e.Excerpt())
	require.Equal(t, "layout: column 8: layer 9 is in two chunks; take it out of chunk 1 or 2", e.Unwrap().Error())

	_, err = Parse(strings.Repeat("L0-7 w=f16 ", 20)+"\n| L8-34+haed", m)
	require.ErrorAs(t, err, &e)
	require.Equal(t, `"L0-7" in the middle of a chunk`, e.Fault.Got)

	_, err = Parse("L0-7"+strings.Repeat(" ", 300)+"| L8-34+haed", m)
	require.ErrorAs(t, err, &e)
	line, caret, _ := strings.Cut(e.Excerpt(), "\n")
	require.Equal(t, byte('+'), line[strings.IndexByte(caret, '^')], "the caret follows a clipped line")
	require.Less(t, len(line), 80)
}

// Every Gemma 4 layout that somebody measured can be planned. invariant
func TestMeasuredLayouts(t *testing.T) {
	data, err := anelab.Files.ReadFile("testdata/measured/experiments.csv")
	require.NoError(t, err)
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	require.NoError(t, err)
	model, layout := slices.Index(rows[0], "model"), slices.Index(rows[0], "layout")
	seen := map[string]bool{}
	for _, row := range rows[1:] {
		name, ok := strings.CutPrefix(row[model], "gemma-4-")
		if !ok || row[layout] == "" || seen[name+row[layout]] {
			continue
		}
		seen[name+row[layout]] = true
		_, err := Parse(row[layout], published(t, name))
		require.NoError(t, err)
	}
	t.Logf("%d layouts", len(seen))
	require.NotEmpty(t, seen)
}

// randomLayout is any layout that can be planned, not only sensible ones.
func randomLayout(r *rand.Rand, m *Model) Layout {
	encodings := []quant.Encoding{{}, quant.Int4G32, quant.DenseF16, quant.DenseF32, {DType: quant.F16, Bits: 6}, {DType: quant.F16, Bits: 8, Group: 7}}
	layers := len(m.Layers)
	var l Layout
	for lo := 0; lo < layers; {
		hi := min(lo+1+r.IntN(1+r.IntN(layers)), layers)
		l.Cuts = append(l.Cuts, Cut{Lo: lo, Hi: hi, Weights: encodings[r.IntN(len(encodings))]})
		lo = hi
	}
	if r.IntN(4) == 0 {
		l.Cuts = append(l.Cuts, Cut{Lo: layers, Hi: layers})
	}
	l.Cuts[len(l.Cuts)-1].Head = true
	for _, layer := range r.Perm(layers + 1)[:r.IntN(3)] {
		l.Attn = append(l.Attn, LayerAttn{layer - 1, []string{"full", "sliding:7", "sliding:2048"}[r.IntN(3)]})
	}
	l.Context = []int{0, 512, 2048, 1 << 20}[r.IntN(4)]
	l.QueryTokens = []int{0, 1, 3}[r.IntN(3)]
	return l
}

func TestRandomLayoutsRoundTrip(t *testing.T) { // invariant: Parse(String(l)) = l
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"e2b", "e4b", "31b"} {
		m := published(t, name)
		for range 300 {
			l := randomLayout(r, m)
			got, err := Parse(l.String(), m)
			require.NoError(t, err, l.String())
			require.Equal(t, l, got, l.String())
		}
	}
}

func FuzzParse(f *testing.F) {
	m := published(f, "e2b")
	for _, seed := range []string{"@3way", "@2way w=f16 context=512", "L0-7 | L8-24 | L25-34+head", "0-34|head", "L0-9 | L9-34",
		"L0-34+head attn=sliding:7 @9 attn=full tokens=3", "L0 | | L1-99999999999", "@", "@9 attn=", "|", "L0-7+", "w=f16", "\xff|\x00",
		"L15-34 | L0-14+head", "head|head", "kv=explicit", "L0–7"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := Parse(text, m)
		if err != nil {
			var e *ParseError
			if !errors.As(err, &e) {
				t.Fatalf("%T: %v", err, err)
			}
			e.Excerpt()
			return
		}
		again, err := Parse(l.String(), m)
		require.NoError(t, err)
		require.Equal(t, l, again)
		_, err = l.Plan(m)
		require.NoError(t, err, "what parses can be planned")
	})
}
