package view

import (
	"strings"

	"anelab/cmd/simulate/internal/metrics"
	"anelab/cmd/simulate/internal/texttab"
)

// Explain is one definition.
type Explain struct {
	Made  Made
	Entry metrics.Entry
}

// Page is the definition in a few lines.
func (r *Explain) Page(p *texttab.Page) {
	e := &r.Entry
	head := []string{e.Name}
	if e.Unit != "" {
		head = append(head, "["+e.Unit+"]")
	}
	p.Head(head...)
	p.Line("%s.", e.Short)
	p.Gap()
	p.Line("%s", e.Text)
	p.Gap()
	p.Line("printed by: %s", e.Seen)
	if len(e.Aliases) > 0 {
		p.Line("also: %s", strings.Join(e.Aliases, ", "))
	}
}

// Document is the entry.
func (r *Explain) Document() any {
	return struct {
		Made
		metrics.Entry
	}{r.Made, r.Entry}
}

// Glossary is the list of definitions.
type Glossary struct{ Made Made }

// Page is one line per entry.
func (r *Glossary) Page(p *texttab.Page) {
	t := texttab.NewTable(texttab.L("name"), texttab.F("what it is"))
	for _, e := range metrics.All() {
		t.Row(e.Name, e.Short)
	}
	p.Table(t)
}

// Document is all entries.
func (r *Glossary) Document() any {
	return struct {
		Made
		Entries []metrics.Entry `json:"entries"`
	}{r.Made, metrics.All()}
}

// Header of the records.
func (r *Glossary) Header() []string {
	return []string{"name", "unit", "short", "text", "seen", "aliases"}
}

// Records are the entries.
func (r *Glossary) Records() [][]string {
	var all [][]string
	for _, e := range metrics.All() {
		all = append(all, entryRecord(&e))
	}
	return all
}

// Header of the records.
func (r *Explain) Header() []string { return (&Glossary{}).Header() }

// Records are the entry.
func (r *Explain) Records() [][]string {
	return [][]string{entryRecord(&r.Entry)}
}

func entryRecord(e *metrics.Entry) []string {
	return []string{e.Name, e.Unit, e.Short, e.Text, e.Seen, strings.Join(e.Aliases, " ")}
}
