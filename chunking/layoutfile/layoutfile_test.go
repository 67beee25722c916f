package layoutfile

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab"
	"anelab/chunking"
	"anelab/gemma4"
	"anelab/internal/format"
	"anelab/quant"
)

func e2b(t testing.TB) *chunking.Model {
	t.Helper()
	data, err := anelab.Files.ReadFile("testdata/configs/e2b.json")
	require.NoError(t, err)
	cfg, err := gemma4.ParseConfig("e2b.json", data)
	require.NoError(t, err)
	m, err := chunking.NewModel(cfg)
	require.NoError(t, err)
	return m
}

func TestRead(t *testing.T) { // hand: what each file means, as layout text
	m := e2b(t)
	for _, c := range []struct{ name, file, want string }{
		{"yaml", "chunks:\n- layers: 0-7\n- layers: 8-24\n- layers: 25-34\n  head: true\n", "L0-7 | L8-24 | L25-34+head"},
		{"ranges as in text", "chunks: [{layers: L0-7}, {layers: 8}, {layers: 9-34+head}]", "L0-7 | L8 | L9-34+head"},
		{"lists", "chunks:\n - layers: [0, 1]\n - layers:\n   - 2\n - {layers: 3-34, head: true}", "L0-1 | L2 | L3-34+head"},
		{"head alone", "chunks: [{layers: 0-34}, {head: true, weights: f16}]", "L0-34 | head w=f16"},
		{"everything", "# comment\ncontext: 8192\ntokens: 3\nkv: explicit\nweights: int8g32\nattn:\n- policy: sliding:2048\n- {layer: 9, policy: full}\nchunks:\n- {layers: 0-14, weights: f16}\n- {layers: 15-34, head: true}\n",
			"L0-14 w=f16 | L15-34+head w=int8g32 attn=sliding:2048 @9 attn=full context=8192 tokens=3"},
		{"stored form", "preset: '@3way'\nattn:\n- policy: full/kivi:2\n- {layer: 3, policy: stream:4+256/int8}\n- {layer: 33, policy: 'duo:4+256:10110101'}",
			"L0-7 | L8-24 | L25-34+head attn=full/kivi:2 @3 attn=stream:4+256/int8 @33 attn=duo:4+256:10110101"},
		{"preset", "preset: '@3way'\nweights: f16\ncontext: 512\nattn: sliding:512", "L0-7 w=f16 | L8-24 w=f16 | L25-34+head w=f16 attn=sliding:512 context=512"},
		{"json", "{\n\t\"chunks\": [\n\t\t{\"layers\": \"0-34\", \"head\": true}\n\t],\n\t\"context\": 512\n}\n", "L0-34+head context=512"},
		{"windows line ends", "context: 512\r\nchunks:\r\n- layers: 0-34\r\n  head: true\r\n", "L0-34+head context=512"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := Read("x.yaml", []byte(c.file), m)
			require.NoError(t, err)
			require.Equal(t, c.want, l.String())
		})
	}
}

// Each fault of a layout file with its place. hand
func TestReadFaults(t *testing.T) {
	m := e2b(t)
	for _, c := range []struct{ name, file, message string }{
		{"typo in a field", "chunks:\n  - layers: 0-7\n  - layers: 8-34\n    wieghts: int4g32\n", `x.yaml:4:5: unknown field "wieghts"; did you mean "weights"?`},
		{"typo at the top", "contxt: 512\nchunks: []", `x.yaml:1:1: unknown field "contxt"; did you mean "context"?`},
		{"overlap", "chunks:\n  - layers: 0-9\n  - layers: 9-34\n    head: true\n", "x.yaml:3:13: layer 9 is in two chunks"},
		{"gap", "chunks: [{layers: 0-7}, {layers: 9-34, head: true}]", "x.yaml:1:34: layer 8 is in no chunk"},
		{"donor later", "chunks:\n- {layers: 0-7}\n- {layers: 15-24}\n- {layers: 8-14}\n- {layers: 25-34, head: true}",
			"x.yaml:3:12: chunk 2 reads keys and values of layer 13, which comes later, in chunk 3; layer 15 shares"},
		{"full donor later", "chunks:\n- {layers: 0-13}\n- {layers: [15, 16, 17, 18, 19]}\n- {layers: 14}\n- {layers: 20-34, head: true}",
			"x.yaml:3:12: chunk 2 reads keys and values of layer 14, which comes later, in chunk 3; layer 19 shares"},
		{"out of order", "chunks:\n- {layers: 8-14}\n- {layers: 0-7}\n- {layers: 15-34, head: true}", "x.yaml:2:12: chunk 1 begins at layer 8, but layer 0 comes next"},
		{"list with a hole", "chunks:\n- layers: [0, 1, 3]\n- {layers: 3-34, head: true}", "x.yaml:2:18: layer 3 after layer 1, want consecutive layers; a chunk runs its layers in order; 2 comes next"},
		{"empty list", "chunks: [{layers: []}]", "no layers, want at least one"},
		{"reversed", "chunks: [{layers: 7-0}]", "7-0 runs backwards; write L0-7"},
		{"past the end", "chunks: [{layers: 0-35, head: true}]", "x.yaml:1:19: layer 35 does not exist; the model's last layer is 34"},
		{"negative layer", "chunks: [{layers: -3}]", `"-3", want layers such as`},
		{"list of text", "chunks: [{layers: [a]}]", `x.yaml:1:20: "a", want a whole number`},
		{"huge layer", "chunks: [{layers: [99999999999999999999]}]", `"99999999999999999999", want a whole number`},
		{"no head", "chunks: [{layers: 0-34}]", "no chunk has the head"},
		{"empty chunk", "chunks: [{layers: 0-34}, {weights: f16}]", "x.yaml:1:26: chunk 2 has no layers"},
		{"no chunks", "context: 512", "x.yaml:1:1: there are no chunks"},
		{"empty chunks", "chunks: []", "there are no chunks"},
		{"chunks are no list", "chunks: 3", `x.yaml:1:9: "3", want a list of chunks`},
		{"chunk is no mapping", "chunks: [0-7]", `x.yaml:1:10: "0-7", want a chunk`},
		{"no mapping", "- 1\n- 2", "x.yaml:1:1: a list, want fields of a layout"},
		{"empty", "", "x.yaml:1:1: nothing"},
		{"null", "chunks:\n", "nothing, want a list of chunks"},
		{"two documents", "context: 512\n---\ncontext: 512\n", "x.yaml:3:1: a second document"},
		{"twice", "context: 512\ncontext: 512\n", `x.yaml:2:1: mapping key "context" already defined`},
		{"syntax", "chunks: [{layers: 0-7\n", "x.yaml:1:"},
		{"alias", "chunks: &a [{layers: 0-34, head: true}]", "a YAML feature that layouts do not use (Anchor)"},
		{"merge key", "<<: {context: 512}\nchunks: []", `unknown field "<<"`},
		{"tag", "context: !!int 512\n", "a YAML feature that layouts do not use (Tag)"},
		{"context of text", "context: big\n", `x.yaml:1:10: "big", want a whole number`},
		{"context 0", "context: 0\n", "0, want at least 1"},
		{"context hex", "context: 0x200\n", `"0x200", want a whole number`},
		{"context fraction", "context: 512.0\n", `"512.0", want a whole number`},
		{"context too large", "context: 2000000\npreset: '@1way'", "x.yaml:1:10: context 2000000; choose 1 to 1048576"},
		{"tokens too many", "preset: '@1way'\ntokens: 2049", "x.yaml:2:9: 2049 query tokens; choose 1 to 2048"},
		{"head of text", "chunks: [{layers: 0-34, head: maybe}]", `x.yaml:1:31: "maybe", want true or false`},
		{"weights", "chunks: [{layers: 0-34, head: true, weights: int4-g32}]", `x.yaml:1:46: "int4-g32", want f32, f16, bf16 or int<bits>`},
		{"preset typo", "preset: '@3wya'", `unknown preset "@3wya"; did you mean "@3way"?`},
		{"preset and chunks", "preset: '@3way'\nchunks: [{layers: 0-34, head: true}]", "x.yaml:1:9: preset together with chunks"},
		{"policy typo", "preset: '@3way'\nattn: [{policy: 'slidng:512'}]", `did you mean "sliding"?`},
		{"policy missing", "preset: '@3way'\nattn: [{layer: 3}]", "x.yaml:2:8: no policy"},
		{"policy of no layer", "preset: '@3way'\nattn: [{layer: 35, policy: full}]", "x.yaml:2:8: layer 35 does not exist"},
		{"policy of layer -1", "preset: '@3way'\nattn: [{layer: -1, policy: full}]", "leave layer out to mean all full layers"},
		{"policies twice", "preset: '@3way'\nattn: [{layer: 3, policy: full}, {layer: 3, policy: full}]", "two attention policies for layer 3"},
		{"state", "preset: '@3way'\nkv: state", "x.yaml:2:5: kv=state"},
		{"too long", strings.Repeat("#", 1<<16+1), "65537 bytes, want at most 65536"},
		{"too deep", "context: 1\n" + strings.Repeat("[", 60000), "x.yaml:2:33: brackets nested too deep"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read("x.yaml", []byte(c.file), m)
			require.ErrorContains(t, err, c.message)
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Contains(t, e.Excerpt(), "^")
			var fault *format.Error
			require.True(t, errors.As(err, &fault))
			require.Equal(t, "x.yaml", fault.Path)
		})
	}
}

// A broken rule of the model has its name, as in layout text; what cannot be read has none. hand
func TestFaultsNameTheRule(t *testing.T) {
	m := e2b(t)
	for _, c := range []struct {
		name, file string
		rule       chunking.Rule
	}{
		{"overlap", "chunks: [{layers: 0-9}, {layers: 9-34, head: true}]", chunking.RuleOverlap},
		{"gap", "chunks: [{layers: 0-7}, {layers: 9-34, head: true}]", chunking.RuleGap},
		{"head", "chunks: [{layers: 0-34}]", chunking.RuleHead},
		{"layer outside", "chunks: [{layers: 0-35, head: true}]", chunking.RuleRange},
		{"donor later", "chunks: [{layers: 15-34}, {layers: 0-14, head: true}]", chunking.RuleDonor},
		{"policy of no layer", "preset: '@3way'\nattn: [{layer: 35, policy: full}]", chunking.RuleAttn},
		{"context", "preset: '@3way'\ncontext: 2000000", chunking.RuleContext},
		{"typo", "chunkz: []", ""},
		{"reversed", "chunks: [{layers: 7-0}]", ""},
		{"syntax", "chunks: [", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read("x.yaml", []byte(c.file), m)
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.rule, e.Rule)
		})
	}
}

func TestExcerpt(t *testing.T) { // hand
	m := e2b(t)
	_, err := Read("mylayout.yaml", []byte("# mine\n\nchunks:\n  - layers: 0-7\n  - layers: 8-24\n    wieghts: int4g32\n"), m)
	require.EqualError(t, err, `mylayout.yaml:6:5: unknown field "wieghts"; did you mean "weights"?`)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "    5 |   - layers: 8-24\n>   6 |     wieghts: int4g32\n            ^", e.Excerpt())
}

// text ↔ YAML ↔ JSON without loss, for layouts of every kind. invariant
func TestFilesRoundTrip(t *testing.T) {
	m := e2b(t)
	r := rand.New(rand.NewPCG(13, 17))
	for range 150 {
		l := randomLayout(r, len(m.Layers))
		for _, f := range []Format{YAML, JSON} {
			var file bytes.Buffer
			require.NoError(t, Write(&file, l, f))
			got, err := Read("x", file.Bytes(), m)
			require.NoError(t, err, file.String())
			require.Equal(t, l, got, file.String())
		}
		got, err := chunking.Parse(l.String(), m)
		require.NoError(t, err)
		require.Equal(t, l, got)
	}
}

func randomLayout(r *rand.Rand, layers int) chunking.Layout {
	encodings := []quant.Encoding{{}, quant.Int4G32, quant.DenseF16, {DType: quant.F16, Bits: 8, Group: 7}}
	l := chunking.Layout{Context: []int{0, 512, 8191}[r.IntN(3)], QueryTokens: []int{0, 1, 3}[r.IntN(3)]}
	for lo := 0; lo < layers; {
		hi := min(lo+1+r.IntN(1+r.IntN(layers)), layers)
		l.Cuts = append(l.Cuts, chunking.Cut{Lo: lo, Hi: hi, Weights: encodings[r.IntN(len(encodings))]})
		lo = hi
	}
	if r.IntN(4) == 0 {
		l.Cuts = append(l.Cuts, chunking.Cut{Lo: layers, Hi: layers})
	}
	l.Cuts[len(l.Cuts)-1].Head = true
	for _, layer := range r.Perm(layers + 1)[:r.IntN(3)] {
		l.Attn = append(l.Attn, chunking.LayerAttn{Layer: layer - 1, Policy: policies[r.IntN(len(policies))]})
	}
	return l
}

// policies that any layer of E2B may have.
var policies = []string{"full", "sliding:7", "wfa:2048", "stream:4+256", "stream:0+9", "duo:4+256:10110101", "duokv:4+256:0", "flash:1024", "stream:4+256"}

func TestWriteYAML(t *testing.T) { // hand
	m := e2b(t)
	l, err := chunking.Parse("L0-7 w=f16 | L8-34 | head context=512 @4 attn=sliding:512", m)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, Write(&b, l, YAML))
	require.Equal(t, strings.Join([]string{"context: 512", "attn:", "- layer: 4", "  policy: sliding:512", "chunks:",
		"- layers: 0-7", "  weights: f16", "- layers: 8-34", "- head: true", ""}, "\n"), b.String())
}

func FuzzRead(f *testing.F) {
	m := e2b(f)
	for _, seed := range []string{"chunks:\n- layers: 0-7\n- layers: 8-34\n  head: true\n", `{"preset": "@3way", "context": 512}`,
		"chunks: [{layers: [0, 1]}, {layers: 2-34+head, weights: f16}]\nattn: sliding:512\n", "attn: [{layer: 3, policy: full}]", "&a *a", "? a\n: b",
		"a: |\n  b\n", "!!x y", "- - - -", "\xff", "context: 1e3", "\"chunks\": \"\\u0000\"", "---\n...\n---\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := Read("x", data, m)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%T: %v", err, err)
			}
			e.Excerpt()
			return
		}
		var file bytes.Buffer
		require.NoError(t, Write(&file, l, JSON))
		again, err := Read("x", file.Bytes(), m)
		require.NoError(t, err)
		require.Equal(t, l, again)
	})
}
