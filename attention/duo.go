package attention

import (
	"fmt"
	"strings"

	"anelab/internal/format"
	"anelab/swa"
)

var (
	_ = register("duo", "duo:4+256:10110101", func(_, arg string) (Policy, error) { return parseDuo(arg, PerQueryHead) })
	_ = register("duokv", "duokv:4+256:1", func(_, arg string) (Policy, error) { return parseDuo(arg, PerKVHead) })
)

// Classes says what a character of a Duo policy stands for.
type Classes uint8

// A class per query head decides what that head looks at. A class per KV head is a gate as DuoAttention trains them: it decides for
// all query heads that read the KV head, so the KV head may also be stored that way.
const (
	PerQueryHead Classes = iota
	PerKVHead
)

// Duo lets some heads see everything and the others stream (DuoAttention). Gates are "1" for sees everything, "0" for streams; "duo"
// has one per query head, "duokv" one per KV head.
//
// Rows are stored for all query heads of a KV head together (spec forward.md §7.3): one head that sees everything keeps every
// row, and then the streaming heads save products but neither memory nor, on one KV head, reads. With one KV head a store
// shrinks only where every head of every reader streams.
type Duo struct {
	Streaming
	Gates string
	Per   Classes
}

func parseDuo(arg string, per Classes) (Policy, error) {
	stream, gates, ok := strings.Cut(arg, ":")
	sink, recent, err := numbers(stream, "+", [2]int{0, 1})
	if !ok || err != nil || gates == "" || strings.Trim(gates, "01") != "" {
		return nil, errForm
	}
	return Duo{Streaming{sink, recent}, gates, per}, nil
}

func (d Duo) String() string {
	name := [...]string{PerQueryHead: "duo", PerKVHead: "duokv"}[d.Per]
	return fmt.Sprintf("%s:%d+%d:%s", name, d.Sink, d.Recent, d.Gates)
}

// Groups are the runs of query heads of one class.
func (d Duo) Groups(heads int) []HeadGroup {
	per := max(heads/len(d.Gates), 1)
	var all []HeadGroup
	for i := range d.Gates {
		if i > 0 && d.Gates[i] == d.Gates[i-1] {
			all[len(all)-1].Hi += per
			continue
		}
		all = append(all, HeadGroup{i * per, (i + 1) * per})
	}
	return all
}

// Visible is everything or what streaming shows, by the class of run g.
func (d Duo) Visible(dst []swa.Span, g int, pos int) []swa.Span {
	first := d.Gates[0] == '1'
	if first == (g%2 == 0) { // classes alternate
		return append(dst, swa.Span{Lo: 0, Hi: pos + 1})
	}
	return d.Streaming.Visible(dst, 0, pos)
}

// Keep is everything if a head sees everything.
func (d Duo) Keep() swa.Retention {
	if strings.Contains(d.Gates, "1") {
		return swa.All
	}
	return d.Streaming.Keep()
}

// Fit refuses gates for another number of heads.
func (d Duo) Fit(heads, kvHeads int) error {
	n := len(d.Gates)
	switch {
	case d.Per == PerQueryHead && n != heads:
		return &format.Error{Field: "attn", Got: fmt.Sprintf("%s: %d classes", d, n), Want: fmt.Sprintf("one for each of %d query heads", heads),
			Fix: fmt.Sprintf("for example duo:%d+%d:%s", d.Sink, d.Recent, strings.Repeat("1", heads))}
	case d.Per == PerKVHead && n != kvHeads:
		return &format.Error{Field: "attn", Got: fmt.Sprintf("%s: %d classes, and %d query heads read %d KV heads: a KV head is stored whole or not at all", d, n, heads, kvHeads),
			Want: fmt.Sprintf("one for each of %d KV heads", kvHeads),
			Fix:  fmt.Sprintf("duokv:%d+%d:%s, or classes per query head, which only mask: duo:%d+%d:%s", d.Sink, d.Recent, d.joined(kvHeads), d.Sink, d.Recent, strings.Repeat("1", heads))}
	}
	return nil
}

// joined rounds the classes up to n gates: a gate is 1 if any class that falls under it is.
func (d Duo) joined(n int) string {
	gates := []byte(strings.Repeat("0", n))
	for i := range d.Gates {
		if d.Gates[i] == '1' {
			gates[i*n/len(d.Gates)] = '1'
		}
	}
	return string(gates)
}
