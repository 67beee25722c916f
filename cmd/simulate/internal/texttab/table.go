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
	gap       = 2  // between columns
	leastFold = 10 // a folding column is never narrower, whatever the others leave
)

// widths of the columns; a folding column gets what is left of the page.
func (t *Table) widths() []int {
	w := make([]int, len(t.columns))
	used := 0
	for i, c := range t.columns {
		w[i] = Width(c.Title)
		for _, row := range t.rows {
			if row != nil {
				w[i] = max(w[i], Width(row[i]))
			}
		}
		if c.Fold {
			w[i] = min(w[i], max(PageWidth-used, Width(c.Title), leastFold))
		}
		used += w[i] + gap
	}
	return w
}

// writeText writes the table; paint is for the header.
func (t *Table) writeText(w io.Writer, paint func(string) string) {
	widths := t.widths()
	titles := make([]string, len(t.columns))
	for i, c := range t.columns {
		titles[i] = c.Title
	}
	if strings.Join(titles, "") != "" {
		fmt.Fprintln(w, paint(t.line(titles, widths)))
	}
	for i, row := range t.rows {
		if row == nil {
			fmt.Fprintln(w, t.rule(t.rows[i+1], widths))
			continue
		}
		t.writeRow(w, row, widths)
	}
}

// writeRow writes one row, and more lines if its last cell folds.
func (t *Table) writeRow(w io.Writer, row []string, widths []int) {
	last := len(row) - 1
	if !t.columns[last].Fold {
		fmt.Fprintln(w, t.line(row, widths))
		return
	}
	first := append([]string(nil), row...)
	for i, part := range Fold(row[last], widths[last]) {
		if i > 0 {
			first = make([]string, len(row))
		}
		first[last] = part
		fmt.Fprintln(w, t.line(first, widths))
	}
}

func (t *Table) line(cells []string, widths []int) string {
	var b strings.Builder
	for i, cell := range cells {
		if i > 0 {
			b.WriteString(pad(gap))
		}
		blanks := pad(widths[i] - Width(cell))
		if t.columns[i].Align == Right {
			b.WriteString(blanks + cell)
		} else {
			b.WriteString(cell + blanks)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// rule is a line above the numbers of a row.
func (t *Table) rule(next []string, widths []int) string {
	cells := make([]string, len(t.columns))
	for i, c := range t.columns {
		if c.Align == Right && next[i] != "" {
			cells[i] = strings.Repeat("-", widths[i])
		}
	}
	return t.line(cells, widths)
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
