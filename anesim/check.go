package anesim

import (
	"cmp"
	"slices"

	"anelab/chunking"
)

// Verdict is how bad a finding is.
type Verdict string

// No means that the plan does not run as planned; the others that it may, or that something about it is worth knowing.
const (
	VerdictNo      Verdict = "no"
	VerdictWarning Verdict = "warning"
	VerdictNote    Verdict = "note"
)

// rank orders findings, worst first.
var rank = map[Verdict]int{VerdictNo: 0, VerdictWarning: 1, VerdictNote: 2}

// Finding is a limit that a plan meets on a device.
type Finding struct {
	Rule     string    `json:"rule"` // its id: stable, for scripts
	Verdict  Verdict   `json:"verdict"`
	Chunk    string    `json:"chunk"` // layout text
	Index    int       `json:"chunk_index"`
	Text     string    `json:"text"`
	Fix      string    `json:"fix"`
	Evidence Evidenced `json:"evidence"`
}

// Evidenced is the observation behind a limit, as a row of limits.csv has it.
type Evidenced struct {
	Limit     string `json:"limit"`
	Condition string `json:"condition"`
	Device    string `json:"device"`
	Outcome   string `json:"outcome"`
	Kind      string `json:"kind"` // "measured" or "reported"
	Source    string `json:"source"`
}

// Check holds a plan against the limits known for the device's class, worst findings first.
func Check(p *chunking.Plan, d Device) []Finding {
	found := []Finding{}
	for i, c := range p.Chunks {
		for _, f := range checkSubject(SubjectOf(p, i, d.Class)) {
			f.Chunk, f.Index = c.String(), i
			found = append(found, f)
		}
	}
	return worstFirst(found)
}

// CheckSubject holds one program against every predicate, worst findings first. It is for graphs that no plan describes.
func CheckSubject(s Subject) []Finding {
	return worstFirst(checkSubject(s))
}

// WorstVerdict is the worst verdict on a program, "" if no predicate is met: [CheckSubject] for a million programs.
func WorstVerdict(s Subject) Verdict {
	var worst Verdict
	records := predicates()
	for i := range records {
		if r := &records[i]; (worst == "" || rank[r.Verdict] < rank[worst]) && r.Meets(s) {
			worst = r.Verdict
		}
	}
	return worst
}

// Every predicate is asked, even after a refusal: the second reason may be the one that is cheaper to cure.
func checkSubject(s Subject) []Finding {
	found, records := []Finding{}, predicates()
	for i := range records {
		if r := &records[i]; r.Meets(s) {
			found = append(found, Finding{Rule: r.ID, Verdict: r.Verdict, Text: r.Text(s), Fix: r.Fix, Evidence: r.Evidence})
		}
	}
	return found
}

// Stable, so that findings of one verdict keep the order of chunks and of limits.csv.
func worstFirst(found []Finding) []Finding {
	slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(rank[a.Verdict], rank[b.Verdict]) })
	return found
}

// Refused reports whether one of the findings is a no.
func Refused(found []Finding) bool {
	return slices.ContainsFunc(found, func(f Finding) bool { return f.Verdict == VerdictNo })
}
