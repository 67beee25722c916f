package chunking

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/gemma4"
)

// priced plans a layout of E2B at a context.
func priced(t *testing.T, text string) (*Plan, Totals) {
	t.Helper()
	m := published(t, "e2b")
	l, err := Parse(text, m)
	require.NoError(t, err)
	require.Equal(t, text, l.String(), "text is written back")
	p := planOf(t, m, l)
	return p, p.Totals()
}

// fullCaches are the bytes of the full layers' caches, inputs only.
func fullCaches(p *Plan) int64 {
	var n int64
	for _, c := range p.Chunks {
		for _, port := range c.Inputs {
			if port.Role == RoleCache && strings.Contains(port.Name, "_full") && len(port.Layers) > 0 {
				n += port.Bytes()
			}
		}
	}
	return n
}

// Each of the three full owners in a chunk of its own, so that a cache has the rows of one layer.
const apart = "L0-4 | L5-9 | L10-34+head"

func TestStreamingStorage(t *testing.T) { // oracle: the table of spec forward.md §7.3, worked from the configuration; S + R = 384
	for _, c := range []struct {
		context         string
		full, kept      int64 // bytes stored by the three buffers; with only layer 14 full
		reads, streamed int64 // of the seven full layers per step; with 4 and 9 streaming
	}{
		{"2048", 12_582_912, 5_767_168, 29_360_128, 22_544_384},
		{"8192", 50_331_648, 18_350_080, 117_440_512, 85_458_944},
		{"32768", 201_326_592, 68_681_728, 469_762_048, 337_117_184},
	} {
		whole, all := priced(t, apart+" context="+c.context)
		stream, some := priced(t, apart+" @4 attn=stream:4+380 @9 attn=stream:4+380 context="+c.context)
		require.Equal(t, c.full, fullCaches(whole))
		require.Equal(t, c.kept, fullCaches(stream))
		require.Equal(t, c.reads-c.streamed, all.KVReadBytes-some.KVReadBytes)
		_, every := priced(t, apart+" attn=stream:4+380 context="+c.context)
		require.Equal(t, c.reads-7*384*2048, all.KVReadBytes-every.KVReadBytes, "the lower bound: every full layer reads 384 rows")
	}
}

func TestBandwidthGateStoresNothingLess(t *testing.T) { // hand: layer 24 streams over layer 14's buffer, which 29 still needs: reads fall, bytes stored do not
	whole, all := priced(t, apart)
	gated, some := priced(t, apart+" @24 attn=stream:4+380")
	require.Equal(t, fullCaches(whole), fullCaches(gated))
	require.Equal(t, int64((2048-384)*2048), all.KVReadBytes-some.KVReadBytes)
	_, group := priced(t, apart+" @14 attn=stream:4+380 @19 attn=stream:4+380 @24 attn=stream:4+380 @29 attn=stream:4+380 @34 attn=stream:0+400")
	shrunk, _ := priced(t, apart+" @14 attn=stream:4+380 @19 attn=stream:4+380 @24 attn=stream:4+380 @29 attn=stream:4+380 @34 attn=stream:0+400")
	require.Equal(t, fullCaches(whole)-int64((2048-404)*2048), fullCaches(shrunk), "sinks of four, and the 400 rows that layer 34 looks back: the union of what readers need")
	require.Less(t, group.KVReadBytes, some.KVReadBytes)
}

func TestATT09PerHeadClassesSaveProductsNotRows(t *testing.T) { // hand: 5 of 8 query heads see everything, on one KV head
	whole, all := priced(t, apart)
	duo, some := priced(t, apart+" @9 attn=duo:4+380:10110101")
	require.Equal(t, fullCaches(whole), fullCaches(duo))
	require.Equal(t, all.KVReadBytes, some.KVReadBytes)
	require.Equal(t, int64(3*(2048-384)*2*512), all.MACs-some.MACs)
	gate, storing := priced(t, apart+" @9 attn=duokv:4+380:0")
	require.Equal(t, fullCaches(whole)-int64((2048-384)*2048), fullCaches(gate))
	require.Equal(t, all.KVReadBytes-int64((2048-384)*2048), storing.KVReadBytes)
	for _, port := range whole.Chunks[1].Inputs {
		if port.Role == RoleCache {
			require.Equal(t, 1, port.Shape[1], "%s: rows of KV heads, never repeated for query heads", port.Name)
		}
	}
}

func TestFormsArePriced(t *testing.T) { // hand: bytes of a position of a full layer, 2,048 as it is
	whole, all := priced(t, apart)
	for _, c := range []struct {
		form         string
		stored, read int64 // bytes of 2,048 positions of one layer
		rebuilt      int64 // products
		weights      int64 // linear parameters of layer 9
	}{
		{"int8", 2048 * (2*512 + 4), 2048 * (2*512 + 4), 0, 0},
		{"kivi:2", 2048 * (256 + 64 + 64), (2048-128)*(256+64+64) + 128*2048, 0, 0}, // the newest 128 are read as they are
		{"palu:64", 2048 * 256, 2048 * 256, 2 * 2048 * 512 * 64, 2 * (64*1536 + 512*64 - 512*1536)},
	} {
		p, some := priced(t, apart+" @9 attn=full/"+c.form)
		require.Equal(t, 2048*2048-c.stored, fullCaches(whole)-fullCaches(p), c.form)
		require.Equal(t, 2048*2048-c.read, all.KVReadBytes-some.KVReadBytes, c.form)
		require.Equal(t, c.weights, some.LinearParams-all.LinearParams, c.form)
		require.Equal(t, c.rebuilt+c.weights-rebuildWeights(c.rebuilt), some.MACs-all.MACs, c.form)
	}
	p, some := priced(t, "L0-9 | L10-34+head @9 attn=full/like:4")
	two, _ := priced(t, "L0-9 | L10-34+head")
	require.Equal(t, int64(2048*(2048-4)), fullCaches(two)-fullCaches(p), "two lengths of two bytes instead of a row and its value")
	require.Equal(t, all.KVReadBytes+2048*4, some.KVReadBytes, "the other layer's rows are read as well")
}

// rebuildWeights are the parameters of the two products that rebuild rows, which run for every row and not once a token.
func rebuildWeights(rebuilt int64) int64 { return rebuilt / 2048 }

func TestBlocksArePriced(t *testing.T) { // hand: 16 blocks of 32 and an index of 64 blocks: 512 rows and 128 rows of keys
	_, all := priced(t, apart)
	_, some := priced(t, apart+" @9 attn=blocks:16x32")
	require.Equal(t, int64((2048-512)*2048-64*2*1024), all.KVReadBytes-some.KVReadBytes)
	require.Equal(t, int64(2*512*8*(2048-512-64)), all.MACs-some.MACs)
	_, flash := priced(t, apart+" attn=flash:1024")
	require.Equal(t, all.KVReadBytes, flash.KVReadBytes)
}

func TestPoliciesOfAnotherModel(t *testing.T) {
	m := published(t, "e2b")
	for text, want := range map[string]string{
		"L0-34+head @9 attn=duo:4+8:1011":                      "want one for each of 8 query heads; for example duo:4+8:11111111",
		"L0-34+head attn=duo:4+8:1011":                         "want one for each of 8 query heads",
		"L0-34+head @9 attn=duokv:4+8:10110101":                "a KV head is stored whole or not at all",
		"L0-34+head @19 attn=full/int8":                        "give the form to layer 14",
		"L0-34+head @9 attn=full/like:14":                      "an earlier full layer that stores its own rows; like:4 would do",
		"L0-34+head @9 attn=full/palu:513":                     "at most the head's 512 numbers",
		"L0-34+head @14 attn=blocks:4x8 @19 attn=blocks:4x16":  "one size of blocks",
		"L0-7 | L8-34+head @9 attn=full/like:4":                "put both into one chunk: no port carries directions",
		"L0-34+head @9 attn=stream:4":                          "the form of stream:4+256",
		"L0-34+head @13 attn=wfa:64/kivi:2":                    "full/kivi:2, or wfa:64/int8",
		"L0-34+head @9 attn=stream:4+8/palu:64 @9 attn=wfa:99": "attn is given twice",
	} {
		_, err := Parse(text, m)
		require.ErrorContains(t, err, want, text)
	}
	e4b := published(t, "e4b")
	_, err := Parse("L0-41+head @5 attn=duokv:4+8:10", e4b)
	require.NoError(t, err, "two KV heads have two gates")
	l := Layout{Cuts: []Cut{{Lo: 0, Hi: 8}, {Lo: 8, Hi: 35, Head: true}}, Attn: []LayerAttn{{9, "full/like:4"}}}
	_, err = l.Plan(m)
	require.ErrorContains(t, err, "put both into one chunk", "a layout made without text")
	require.Equal(t, gemma4.Full, m.Layers[9].Kind)
}
