package texttab

import (
	"fmt"
	"io"
	"strings"

	"anelab/cmd/simulate/internal/console"
)

// Page writes one screen. Write errors show when the writer behind it is flushed.
type Page struct {
	w        io.Writer
	paint    console.Paint
	markdown bool
	notes    []string
}

// NewPage starts a page of plain text.
func NewPage(w io.Writer, paint console.Paint) *Page { return &Page{w: w, paint: paint} }

// NewMarkdown starts a page of Markdown.
func NewMarkdown(w io.Writer) *Page { return &Page{w: w, markdown: true} }

// Line writes text, folded at the width of the page; further lines are indented.
func (p *Page) Line(format string, args ...any) { p.lines(fmt.Sprintf(format, args...), p.same) }

// Head writes a header: parts two blanks apart, on further lines where one is too short.
func (p *Page) Head(parts ...string) {
	if p.markdown {
		fmt.Fprintf(p.w, "## %s\n\n", strings.Join(parts, "  "))
		return
	}
	line := ""
	for _, part := range parts {
		switch {
		case line == "":
			line = part
		case Width(line)+gap+Width(part) <= PageWidth:
			line += pad(gap) + part
		default:
			fmt.Fprintln(p.w, p.paint.Bold(line))
			line = indent + part
		}
	}
	fmt.Fprintln(p.w, p.paint.Bold(line))
}

// Yes writes an answer that is good news.
func (p *Page) Yes(format string, args ...any) {
	p.lines(fmt.Sprintf(format, args...), p.paint.Good)
}

// No writes an answer that is not.
func (p *Page) No(format string, args ...any) { p.lines(fmt.Sprintf(format, args...), p.paint.Bad) }

// Answer writes the line that the page led up to.
func (p *Page) Answer(format string, args ...any) {
	p.lines(fmt.Sprintf(format, args...), p.paint.Bold)
}

func (p *Page) same(s string) string { return s }

// indent of the lines that follow a folded one.
const indent = "  "

func (p *Page) lines(text string, paint func(string) string) {
	if p.markdown {
		fmt.Fprintf(p.w, "%s\n\n", text)
		return
	}
	if Width(text) <= PageWidth {
		fmt.Fprintln(p.w, paint(text))
		return
	}
	for i, line := range Fold(text, PageWidth-len(indent)) {
		if i > 0 {
			line = indent + line
		}
		fmt.Fprintln(p.w, paint(line))
	}
}

// Verbatim writes a block as it is.
func (p *Page) Verbatim(block string) {
	block = strings.TrimRight(block, "\n")
	if p.markdown {
		fmt.Fprintf(p.w, "```\n%s\n```\n\n", block)
		return
	}
	fmt.Fprintln(p.w, block)
}

// Gap leaves a line free.
func (p *Page) Gap() {
	if !p.markdown {
		fmt.Fprintln(p.w)
	}
}

// Table writes a table.
func (p *Page) Table(t *Table) {
	if p.markdown {
		t.writeMarkdown(p.w)
		fmt.Fprintln(p.w)
		return
	}
	t.writeText(p.w, p.paint.Bold)
}

var superscript = strings.NewReplacer("0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴", "5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹")

// Note files a footnote and returns its mark; the same text gets the same mark.
func (p *Page) Note(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	at := len(p.notes)
	for i, n := range p.notes {
		if n == text {
			at = i
		}
	}
	if at == len(p.notes) {
		p.notes = append(p.notes, text)
	}
	return superscript.Replace(fmt.Sprint(at + 1))
}

// Notes writes the footnotes filed so far and forgets them.
func (p *Page) Notes() {
	if len(p.notes) > 0 {
		p.Gap()
	}
	for i, n := range p.notes {
		p.lines(superscript.Replace(fmt.Sprint(i+1))+" "+n, p.same)
	}
	p.notes = nil
}
