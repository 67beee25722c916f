package console

import (
	"fmt"
	"strings"
	"time"
)

// Work that is done before a person wonders needs no progress.
const (
	quietFor  = time.Second
	eachAfter = 100 * time.Millisecond
)

// Progress is one line on standard error that overwrites itself. It stays silent unless standard error is a terminal and the
// work has lasted a second. The zero value is silent.
type Progress struct {
	console *Console
	next    time.Time
	shown   int // columns on the line
}

// Progress starts a line.
func (c *Console) Progress() *Progress {
	if !c.ErrTerminal {
		return &Progress{}
	}
	return &Progress{console: c, next: time.Now().Add(quietFor)}
}

// Say replaces the line, at most ten times a second.
func (p *Progress) Say(format string, args ...any) {
	if p.console == nil || time.Now().Before(p.next) {
		return
	}
	p.next = time.Now().Add(eachAfter)
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(p.console.Err, "\r%s%s", text, strings.Repeat(" ", max(0, p.shown-len(text))))
	p.shown = len(text)
}

// Done clears the line.
func (p *Progress) Done() {
	if p.shown > 0 {
		fmt.Fprintf(p.console.Err, "\r%s\r", strings.Repeat(" ", p.shown))
		p.shown = 0
	}
}
