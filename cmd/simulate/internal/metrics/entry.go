package metrics

import (
	"fmt"
	"slices"
	"strings"

	"anelab/anesim"
	"anelab/internal/format"
)

// Entry defines one quantity.
type Entry struct {
	Name    string   `json:"name"`
	Aliases []string `json:"aliases"` // keys and headings under which it appears
	Unit    string   `json:"unit"`
	Short   string   `json:"short"` // one line
	Text    string   `json:"text"`  // the definition, and what to beware of
	Seen    string   `json:"seen"`  // verbs that print it
}

// All lists the entries: results first, then where time goes, then calibration, verification, quality, requests.
func All() []Entry {
	all := slices.Concat(rates, resources, terms(), accuracy, agreement, judgements, requests, layouts)
	for i := range all {
		if all[i].Aliases == nil {
			all[i].Aliases = []string{}
		}
	}
	return all
}

// Names lists names, without aliases.
func Names() []string {
	var names []string
	for _, e := range All() {
		names = append(names, e.Name)
	}
	return names
}

// Find looks up a name or an alias; case, and the difference between - and _, do not matter.
func Find(name string) (Entry, error) {
	for _, e := range All() {
		for _, known := range append([]string{e.Name}, e.Aliases...) {
			if fold(known) == fold(name) {
				return e, nil
			}
		}
	}
	fix := "simulate explain lists all"
	if format.Closest(fold(name), Names()) != "" {
		fix = format.DidYouMean(fold(name), Names())
	}
	return Entry{}, &format.Error{Got: fmt.Sprintf("no definition of %q", name), Fix: fix}
}

func fold(s string) string {
	return strings.NewReplacer("-", "_", " ", "_", "/", "_").Replace(strings.ToLower(s))
}

// termTexts say what a term stands for; unit and quantity come from the cost model itself.
var termTexts = map[anesim.Term]string{
	anesim.Dispatch:        "What a Core ML call costs before and after its work, whatever the chunk.",
	anesim.WeightStream:    "Every weight byte of a chunk is read once per token. Decode is mostly this.",
	anesim.AttentionOwn:    "A full-attention layer that owns its keys and values reads them, rewrites its cache and attends to every compiled position.",
	anesim.AttentionShared: "A full-attention layer that reads a donor's keys and values attends to every compiled position; nothing is rewritten.",
	anesim.HandoffBytes:    "Keys and values of the donors (kv13, kv14) that a later chunk takes in as inputs.",
	anesim.HandoffCall:     "Paid once by a chunk that takes in a donor's keys and values at all.",
	anesim.HandoffFirst:    "Paid once more if those come straight from the chunk that has just written them.",
	anesim.CopyBackBytes:   "Caches that the host copies inside the timed call. Only with --copyback sync.",
	anesim.PLEProjection:   "The first chunk computes the per-layer inputs of all layers.",
	anesim.HostStep:        "Embedding, masks and sampling on the CPU, per token.",
	anesim.HostPositions:   "Masks are as long as the context: host time per position.",
}

// terms turns the cost model's own list into entries.
func terms() []Entry {
	var all []Entry
	for t := range anesim.NumTerms {
		all = append(all, Entry{Name: t.String(), Unit: t.Unit(), Seen: "plan --format json, devices NAME",
			Short: fmt.Sprintf("constant of the cost model: seconds = %s × %s", t, t.Quantity()),
			Text:  termTexts[t] + fmt.Sprintf(" Shown under %q in tables.", t.Resource())})
	}
	return all
}

// Markdown is the page of all definitions.
func Markdown() string {
	var b strings.Builder
	b.WriteString("# What the printed figures mean\n\nGenerated from cmd/simulate/internal/metrics; `simulate explain NAME` prints the same.\n" +
		"JSON and CSV carry SI units in their keys; text is scaled for reading.\n")
	for _, e := range All() {
		fmt.Fprintf(&b, "\n## %s\n\n%s.", e.Name, upper(e.Short))
		if e.Unit != "" {
			fmt.Fprintf(&b, " Unit: %s.", e.Unit)
		}
		fmt.Fprintf(&b, "\n\n%s\n\nPrinted by %s.", e.Text, e.Seen)
		if len(e.Aliases) > 0 {
			fmt.Fprintf(&b, " Also: %s.", strings.Join(e.Aliases, ", "))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
