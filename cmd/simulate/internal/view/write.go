package view

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"

	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/texttab"
)

// Result is what a verb found.
type Result interface {
	// Page shows the result to a person.
	Page(p *texttab.Page)
	// Document is the result as JSON.
	Document() any
}

// Tabular is a result with a table for spreadsheets.
type Tabular interface {
	// Header names the columns, units in the names; Records are the lines.
	Header() []string
	Records() [][]string
}

// Benchmarked is a result with lines for benchstat.
type Benchmarked interface {
	Benchmark(w io.Writer) error
}

// Format is a value of --format.
type Format string

// Formats. A verb has those that its result has a form for.
const (
	Text      Format = "text"
	JSON      Format = "json"
	JSONL     Format = "jsonl"
	CSV       Format = "csv"
	Markdown  Format = "markdown"
	Benchstat Format = "benchstat"
)

// Write writes a result. Errors of the writer are left to its Flush.
func Write(w io.Writer, r Result, f Format, paint console.Paint) error {
	switch f {
	case Text:
		r.Page(texttab.NewPage(w, paint))
		return nil
	case Markdown:
		r.Page(texttab.NewMarkdown(w))
		return nil
	case JSON:
		return writeJSON(w, r.Document())
	case CSV:
		if t, ok := r.(Tabular); ok {
			c := csv.NewWriter(w)
			if err := c.Write(t.Header()); err != nil {
				return err
			}
			return c.WriteAll(t.Records())
		}
	case Benchstat:
		if b, ok := r.(Benchmarked); ok {
			return b.Benchmark(w)
		}
	}
	panic(fmt.Sprintf("view: %T has no form %q", r, f))
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
