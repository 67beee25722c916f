package report

import (
	"bytes"
	"encoding/xml"
	"flag"
	"io"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write testdata/page.html")

// example has one of everything, small numbers, and text that has to be escaped.
func example() *Page {
	return &Page{Tool: "simulate 1.2.3", Command: "simulate report -o 'a<b'", Model: "tiny & co", Layers: 7, Device: "Phone <3>", Hash: "0123",
		Verdict: "L0-2 | L3-6+head is the fastest.", Basis: "2 sessions", Warnings: []string{"a < b"}, Context: 11,
		Rankings: []Ranking{
			{Context: 11, Priced: 13, Open: true, Rows: []Row{{"1", "L0-2 | L3-6+head", 31.4, 29.5, 33.7, "weights", 0.53}, {"no", "@1way", 41, 37, 43, "weights", 0.61}}},
			{Context: 17, Priced: 13, Rows: []Row{{"1", "L0-6+head", 23, 19, 29, "attention", 0.71}}},
		},
		Bars: []Bar{
			{"@2way", 100, []Call{{"L0-2", []Part{{"dispatch", 1e-3}, {"weights", 3e-3}}}, {"L3-6+head", []Part{{"dispatch", 1e-3}, {"weights", 4e-3}}}, {"host", []Part{{"host", 1e-3}}}}},
			{"@1way", 125, []Call{{"L0-6+head", []Part{{"dispatch", 1e-3}, {"weights", 7e-3}, {"hand-off", 0}}}}},
		},
		Front:     []FrontPoint{{"int4", "L0-6+head", 125, 7e8, 0.3, 9e8}, {"int8", "L0-2 | L3-6+head", 90, 13e8, 0.5, 17e8}},
		FrontNote: "Of 13 layouts.",
		Residuals: []Residual{{"s1", "L0-2", 11, 5e-3, 5.5e-3, 4.9e-3, 6.1e-3, true}, {"s2", "L3-6+head", 11, 7e-3, 5e-3, 4.7e-3, 5.3e-3, false}},
		Grid:      Grid{[]string{"@2way", "@1way"}, []string{"int4"}, []string{"async", "none"}, []int{11, 17}, 1, []Cell{{1, 0.5, 2, "weights", ""}, {2, 1, 3, "weights", ""}, {3, 2, 4, "host", ""}, {4, 3, 5, "host", ""}, {5, 4, 6, "ple", "rule"}, {6, 5, 7, "ple", ""}, {7, 6, 8, "ple", ""}, {8, 7, 9, "ple", ""}}},
	}
}

func write(t *testing.T, p *Page) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, p.Write(&b))
	return b.String()
}

// hand: looked at in a browser, light, dark, narrow and printed
func TestPageIsAsItWasLookedAt(t *testing.T) {
	const path = "testdata/page.html"
	got := write(t, example())
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "run this test with -update, and look at the page")
}

// invariant: nothing in the page makes a browser fetch anything.
func TestPageNeedsNoNetwork(t *testing.T) {
	page := write(t, example())
	require.NotRegexp(t, regexp.MustCompile(`(?i)https?:|\bsrc=|\bhref=|@import|url\(|fetch\(|XMLHttp|//[a-z]`), page)
	require.Contains(t, page, `content="default-src 'none'`)
}

func TestEveryChartHasItsTable(t *testing.T) { // invariant
	page := write(t, example())
	require.Equal(t, 3, strings.Count(page, "<svg "))
	for _, part := range strings.Split(page, "</svg></div>")[1:] {
		require.True(t, strings.HasPrefix(strings.TrimSpace(part), "<details><summary>table</summary>"), part[:40])
	}
	require.Contains(t, page, "Phone &lt;3&gt;")
	require.NotContains(t, page, "ZgotmplZ", "nothing that the template refused")
}

func TestDrawingsAreWellFormed(t *testing.T) { // invariant, with text that has to be escaped
	p := example()
	p.Bars[0].Name, p.Front[0].Layout, p.Residuals[0].Session = `a<b & "c"`, "<script>", "x > y"
	for name, svg := range map[string]string{"bars": string(barChart(p.Bars)), "front": string(frontChart(p.Front)), "residuals": string(residualChart(p.Residuals)),
		"no bars": string(barChart(nil)), "no front": string(frontChart(nil)), "no residuals": string(residualChart(nil)), "one point": string(frontChart(p.Front[:1]))} {
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			_, err := d.Token()
			if err == io.EOF {
				break
			}
			require.NoError(t, err, name)
		}
		require.NotContains(t, svg, "NaN", name)
		require.NotContains(t, svg, "Inf", name)
	}
}

func TestBarsAreAsLongAsTheirTime(t *testing.T) { // hand: 10 ms and 8 ms
	bars := example().Bars
	require.InDelta(t, 10e-3, bars[0].Seconds(), 1e-12)
	require.InDelta(t, 8e-3, bars[1].Seconds(), 1e-12)
	require.Equal(t, []string{"dispatch", "weights", "host"}, resourceNames(bars), "a resource without time has no colour")
	svg := string(barChart(bars))
	require.Contains(t, svg, `<rect class="call" x="210" y="37" width="224" height="26"/>`, "4 ms of 10 ms, on 560 pixels")
	require.Contains(t, svg, "L3-6+head: weights 4.00 ms (call 5.00 ms)")
}

func TestTicks(t *testing.T) { // hand
	require.Equal(t, []float64{0, 5, 10, 15}, ticks(0, 17, 4))
	require.InDeltaSlice(t, []float64{-0.2, 0, 0.2}, ticks(-0.25, 0.3, 3), 1e-12)
	require.Equal(t, []float64{7}, ticks(7, 7, 4))
	require.Equal(t, []float64{math.Inf(1)}, ticks(math.Inf(1), 0, 4))
	require.Equal(t, "−0.2", short(-0.2))
}

func TestGridCells(t *testing.T) { // hand: layout, weights, copy-back, context
	g := example().Grid
	require.Equal(t, 5.0, g.At(1, 0, 0, 0).Rate)
	require.Equal(t, 4.0, g.At(0, 0, 1, 1).Rate)
	rows := g.Rows()
	require.Len(t, rows, 2)
	require.Equal(t, []string{"5.00 (4.00–6.00)", "6.00 (5.00–7.00)"}, rows[1].Rates)
}
