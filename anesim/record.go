package anesim

import (
	"slices"
	"strings"
	"sync"

	"anelab/anesim/evidence"
)

// RecordSort says what an observation about the tool chain can be used for.
type RecordSort string

// A predicate can be asked of a program. A fact holds of what was observed and nothing follows for other programs. A
// refuted claim is kept so that nobody has to refute it again.
const (
	SortPredicate RecordSort = "predicate"
	SortFact      RecordSort = "fact"
	SortRefuted   RecordSort = "refuted claim"
)

// LimitRecord is one observation about the tool chain in typed form.
type LimitRecord struct {
	ID       string     `json:"rule"` // stable, for scripts
	Sort     RecordSort `json:"sort"`
	Class    Class      `json:"class"`   // of device; "" = every class
	Verdict  Verdict    `json:"verdict"` // of a predicate that is met
	Fix      string     `json:"fix"`
	Note     string     `json:"note"` // what a fact or a refuted claim is good for
	Evidence Evidenced  `json:"evidence"`

	meets func(*Subject) bool
	text  func(*Subject) string
}

// Meets reports whether a program meets the condition of a predicate on a device of its class. Facts and refuted claims
// are met by nothing.
func (r *LimitRecord) Meets(s Subject) bool {
	return r.Sort == SortPredicate && (r.Class == "" || r.Class == s.Class) && r.meets(&s)
}

// Text is what there is to say of a program that meets the predicate.
func (r *LimitRecord) Text(s Subject) string {
	if r.text == nil {
		return r.Evidence.Condition + ": " + r.Evidence.Outcome
	}
	return r.text(&s)
}

// LimitRecords lists every observation: predicates that plans can meet first, in the order in which findings are given.
func LimitRecords() []LimitRecord { return slices.Clone(limitRecords()) }

// limitRecords are made once: checking a million plans must not look a million times into a table.
var limitRecords = sync.OnceValue(func() []LimitRecord {
	return slices.Concat(sizeLimits(), stateLimits(), formatLimits(), runtimeLimits(), limitFacts())
})

// predicates are the records that can be asked of a program.
var predicates = sync.OnceValue(func() []LimitRecord { return LimitsOfSort(SortPredicate) })

// LimitsOfSort lists the records of one sort.
func LimitsOfSort(sort RecordSort) []LimitRecord {
	return slices.DeleteFunc(LimitRecords(), func(r LimitRecord) bool { return r.Sort != sort })
}

// observed finds the row of limits.csv behind a record: the one whose condition begins so, on a device that is named so.
// Conditions such as "same" repeat, so the device decides.
func observed(limit, condition, device string) Evidenced {
	for _, l := range evidence.Limits() {
		if l.Limit == limit && strings.HasPrefix(l.Condition, condition) && strings.HasPrefix(l.Device, device) {
			return Evidenced{Limit: l.Limit, Condition: l.Condition, Device: l.Device, Outcome: l.Outcome, Kind: l.Kind, Source: l.Source}
		}
	}
	panic("anesim: no such row in limits.csv")
}

// predicate, fact and refuted make records that need no text of their own.
func predicate(id string, class Class, v Verdict, meets func(*Subject) bool, e Evidenced) LimitRecord {
	return LimitRecord{ID: id, Sort: SortPredicate, Class: class, Verdict: v, meets: meets, Evidence: e}
}

// A fact has no verdict, and a note that says what it is good for.
func fact(id, note string, e Evidenced) LimitRecord {
	return LimitRecord{ID: id, Sort: SortFact, Note: note, Evidence: e}
}
