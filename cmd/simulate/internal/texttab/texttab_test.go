package texttab

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/cmd/simulate/internal/console"
)

func plain() (*Page, *bytes.Buffer) {
	var b bytes.Buffer
	return NewPage(&b, console.Paint{}), &b
}

func TestWidthCountsWhatIsSeen(t *testing.T) { // hand
	require.Equal(t, 9, Width("12.0–13.2"))
	require.Equal(t, 2, Width("a¹"))
	require.Equal(t, 1, Width("e\u0301"), "a combining accent takes no column")
}

func TestFold(t *testing.T) { // hand
	require.Equal(t, []string{"one two", "three"}, Fold("one two three", 9))
	require.Equal(t, []string{"a", "bcdef", "gh i"}, Fold("a bcdefgh i", 5), "a word too long is cut")
	require.Equal(t, []string{""}, Fold("  ", 9))
	require.Equal(t, []string{"–––", "––"}, Fold("–––––", 3), "characters, not bytes")
}

func TestTable(t *testing.T) { // hand
	p, b := plain()
	table := NewTable(L("chunk"), R("time"), F("why"))
	table.Row("L0-7", "5.59 ms", "short")
	table.Row("L8-24 ¹", "12.6 ms", strings.Repeat("word ", 15))
	table.Rule()
	table.Row("all", "18.2 ms")
	p.Table(table)
	require.Equal(t, strings.Join([]string{
		"chunk       time  why",
		"L0-7     5.59 ms  short",
		"L8-24 ¹  12.6 ms  " + strings.TrimSpace(strings.Repeat("word ", 12)),
		"                  word word word",
		"         -------",
		"all      18.2 ms", ""}, "\n"), b.String())
}

func TestMarkdown(t *testing.T) { // hand
	var b bytes.Buffer
	p := NewMarkdown(&b)
	table := NewTable(L("layout"), R("n"))
	table.Row("L0 | L1", "2")
	p.Head("a", "b")
	p.Table(table)
	p.Verbatim("x\n")
	require.Equal(t, "## a  b\n\n| layout | n |\n|---|--:|\n| L0 \\| L1 | 2 |\n\n```\nx\n```\n\n", b.String())
}

func TestHeadBreaksBetweenParts(t *testing.T) { // hand
	p, b := plain()
	p.Head(strings.Repeat("x", 40), strings.Repeat("y", 38), "z")
	require.Equal(t, strings.Repeat("x", 40)+"  "+strings.Repeat("y", 38)+"\n  z\n", b.String())
}

func TestNotesAreNumberedOnce(t *testing.T) { // hand
	p, b := plain()
	require.Equal(t, "¹", p.Note("first"))
	require.Equal(t, "²", p.Note("second"))
	require.Equal(t, "¹", p.Note("first"))
	p.Notes()
	require.Equal(t, "\n¹ first\n² second\n", b.String())
}

// invariant: whatever is written as text fits on the page.
func TestNothingIsWiderThanThePage(t *testing.T) {
	p, b := plain()
	long := strings.Repeat("abcdefg ", 40)
	p.Line("%s", long)
	p.Yes("%s", long)
	p.Note("%s", long)
	p.Notes()
	table := NewTable(L("a"), F("b"))
	table.Row(strings.Repeat("k", 50), long)
	p.Table(table)
	for _, line := range strings.Split(b.String(), "\n") {
		require.LessOrEqual(t, Width(line), PageWidth)
	}
}

// hand: 39 + 2 + 40 columns are one too many, so the gap gives way
func TestWideTablesStandCloser(t *testing.T) {
	for width, gap := range map[int]int{39: 2, 40: 1} {
		var b bytes.Buffer
		table := NewTable(L("a"), L("b"))
		table.Row(strings.Repeat("x", 39), strings.Repeat("y", width))
		NewPage(&b, console.Paint{}).Table(table)
		require.Contains(t, b.String(), "x"+strings.Repeat(" ", gap)+"y")
	}
}
