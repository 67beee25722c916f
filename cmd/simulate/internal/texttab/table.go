package texttab

import (
	"fmt"
	"io"
	"strings"
)

// Align is the side of a column that is even.
type Align uint8

// Text is even on the left, numbers on the right.
const (
	Left Align = iota
	Right
)

// Column is one column of a table.
type Column struct {
	Title string
	Align Align
	Fold  bool // takes the width that is left and continues on the next line; only the last column may
}

// Table is rows under a header.
type Table struct {
	columns []Column
	rows    [][]string // nil is a rule
}

// NewTable starts a table.
func NewTable(columns ...Column) *Table { return &Table{columns: columns} }

// L is a column of text.
func L(title string) Column { return Column{Title: title} }

// R is a column of numbers.
func R(title string) Column { return Column{Title: title, Align: Right} }

// F is a last column of sentences.
func F(title string) Column { return Column{Title: title, Fold: true} }

// Row adds one row; cells that are not given are empty.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(t.columns))
	copy(row, cells)
	t.rows = append(t.rows, row)
}

// Rule adds a line between what came before and the numbers of the next row, which must follow.
func (t *Table) Rule() { t.rows = append(t.rows, nil) }

const (
	gap       = 2  // between columns; 1 in a table that would be wider than the page
	leastFold = 10 // a folding column is never narrower, whatever the others leave
)

// grid is where the columns of a table stand.
type grid struct {
	columns []Column
	widths  []int
	gap     int
}

// grid leaves the usual gap between columns, or less if that would be wider than the page.
func (t *Table) grid() grid {
	for between := gap; between > 1; between-- {
		if g := t.gridWith(between); g.width() <= PageWidth {
			return g
		}
	}
	return t.gridWith(1)
}

// gridWith gives a folding column what is left of the page.
func (t *Table) gridWith(between int) grid {
	g := grid{t.columns, make([]int, len(t.columns)), between}
	for i, c := range t.columns {
		g.widths[i] = Width(c.Title)
		for _, row := range t.rows {
			if row != nil {
				g.widths[i] = max(g.widths[i], Width(row[i]))
			}
		}
		if c.Fold {
			used := grid{widths: g.widths[:i], gap: between}.width() + between
			g.widths[i] = min(g.widths[i], max(PageWidth-used, Width(c.Title), leastFold))
		}
	}
	return g
}

func (g grid) width() int {
	all := g.gap * max(len(g.widths)-1, 0)
	for _, w := range g.widths {
		all += w
	}
	return all
}

// writeText writes the table; paint is for the header.
func (t *Table) writeText(w io.Writer, paint func(string) string) {
	g := t.grid()
	titles := make([]string, len(t.columns))
	for i, c := range t.columns {
		titles[i] = c.Title
	}
	if strings.Join(titles, "") != "" {
		fmt.Fprintln(w, paint(g.line(titles)))
	}
	for i, row := range t.rows {
		if row == nil {
			fmt.Fprintln(w, g.rule(t.rows[i+1]))
			continue
		}
		g.writeRow(w, row)
	}
}

// writeRow writes one row, and more lines if its last cell folds.
func (g grid) writeRow(w io.Writer, row []string) {
	last := len(row) - 1
	if !g.columns[last].Fold {
		fmt.Fprintln(w, g.line(row))
		return
	}
	first := append([]string(nil), row...)
	for i, part := range Fold(row[last], g.widths[last]) {
		if i > 0 {
			first = make([]string, len(row))
		}
		first[last] = part
		fmt.Fprintln(w, g.line(first))
	}
}

func (g grid) line(cells []string) string {
	var b strings.Builder
	for i, cell := range cells {
		if i > 0 {
			b.WriteString(pad(g.gap))
		}
		blanks := pad(g.widths[i] - Width(cell))
		if g.columns[i].Align == Right {
			b.WriteString(blanks + cell)
		} else {
			b.WriteString(cell + blanks)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// rule is a line above the numbers of a row.
func (g grid) rule(next []string) string {
	cells := make([]string, len(g.columns))
	for i, c := range g.columns {
		if c.Align == Right && next[i] != "" {
			cells[i] = strings.Repeat("-", g.widths[i])
		}
	}
	return g.line(cells)
}

// writeMarkdown writes the table as GitHub's Markdown has them; rules are left out.
func (t *Table) writeMarkdown(w io.Writer) {
	titles, marks := make([]string, len(t.columns)), make([]string, len(t.columns))
	for i, c := range t.columns {
		titles[i], marks[i] = c.Title, "---"
		if c.Align == Right {
			marks[i] = "--:"
		}
	}
	fmt.Fprintf(w, "| %s |\n|%s|\n", strings.Join(titles, " | "), strings.Join(marks, "|"))
	for _, row := range t.rows {
		if row == nil {
			continue
		}
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = strings.ReplaceAll(cell, "|", `\|`)
		}
		fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
	}
}
