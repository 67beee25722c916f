package view

import (
	"fmt"
	"math"

	"anelab/cmd/simulate/internal/texttab"
	placing "anelab/coreml/place"
)

// placements shows where ops run: a line per program, and why ops are off the engine.
func placements(p *texttab.Page, all []*placing.Placement, every Every) {
	t := texttab.NewTable(texttab.L("program"), texttab.R("ops"), texttab.R("ANE"), texttab.R("CPU"), texttab.R("GPU"), texttab.L("at most 5% off the ANE"))
	for _, at := range all {
		passes := "yes"
		if !at.Passes() {
			passes = "no"
		}
		t.Row(at.Function, fmt.Sprint(len(at.Ops)+at.Between), fmt.Sprint(at.Count("ANE")+engineBetween(at)), fmt.Sprint(at.Count("CPU")), fmt.Sprint(len(at.Ops)+at.Between-at.Count("ANE")-at.Count("CPU")-engineBetween(at)), passes)
	}
	p.Table(t)
	why := texttab.NewTable(texttab.L("program"), texttab.L("op"), texttab.R("ops"), texttab.L("on"), texttab.F("why not the ANE"))
	rows := 0
	for _, at := range all {
		for _, g := range groupsOf(at, every) {
			why.Row(texttab.Clip(at.Function, 16), texttab.Clip(g.name, 24), fmt.Sprint(g.ops), g.unit, g.why)
			rows++
		}
	}
	if rows > 0 {
		p.Gap()
		p.Table(why)
	}
}

// engineBetween are the ops between those listed, where they are on the engine.
func engineBetween(at *placing.Placement) int {
	if at.Size != nil {
		return 0
	}
	return at.Between
}

// Every says whether each op gets a line of its own.
type Every uint8

// One line for ops of one type with one reason, or one for each.
const (
	Grouped Every = iota
	Single
)

// offGroup are ops off the engine for one reason.
type offGroup struct {
	name, unit, why string
	ops             int
}

// groupsOf collects the ops that are off the engine.
func groupsOf(at *placing.Placement, every Every) []offGroup {
	if at.Size != nil {
		return []offGroup{{"all", "GPU", string(at.Size.Rule) + ": " + at.Size.Text, len(at.Ops) + at.Between}}
	}
	var groups []offGroup
	index, types := map[string]int{}, map[string]bool{}
	for i := range at.Ops {
		op := &at.Ops[i]
		if op.Backend == placing.ANE {
			continue
		}
		g := offGroup{op.Type, op.Backend.Unit(), op.Why(), 1}
		key := op.Type
		if op.Refusal != nil {
			key += string(op.Refusal.Rule)
		} else { // neighbours go together
			types[op.Type] = true
			key = ""
		}
		if every == Single {
			g.name = op.Type + " " + op.Name
			key = fmt.Sprint(i)
		}
		if k, ok := index[key]; ok {
			if groups[k].ops++; key == "" {
				groups[k].name = plural(len(types), "type")
			}
			continue
		}
		index[key] = len(groups)
		groups = append(groups, g)
	}
	return groups
}

type placementDocument struct {
	Program string                `json:"program"`
	Ops     int                   `json:"ops"`
	Unit    map[string]int        `json:"ops_by_unit"`
	Passes  bool                  `json:"passes_5_percent"`
	Off     []offPlacedOpDocument `json:"off_engine"`
}

type offPlacedOpDocument struct {
	Op       string  `json:"op"`
	Name     string  `json:"name"`
	Unit     string  `json:"unit"`
	Rule     string  `json:"rule"` // "" where the engine takes the op and the path does not
	Why      string  `json:"why"`
	Source   string  `json:"source"`
	PenaltyS float64 `json:"penalty_s"` // −1 where the engine does not take the op
}

func placementDocuments(all []*placing.Placement) []placementDocument {
	list := []placementDocument{}
	for _, at := range all {
		d := placementDocument{Program: at.Function, Ops: len(at.Ops) + at.Between, Passes: at.Passes(), Off: []offPlacedOpDocument{},
			Unit: map[string]int{"ANE": at.Count("ANE") + engineBetween(at), "CPU": at.Count("CPU"), "GPU": at.Count("GPU") + at.Between - engineBetween(at)}}
		for i := range at.Ops {
			op := &at.Ops[i]
			if op.Backend == placing.ANE {
				continue
			}
			off := offPlacedOpDocument{Op: op.Type, Name: op.Name, Unit: op.Backend.Unit(), Why: op.Why(), PenaltyS: op.PenaltySeconds}
			if op.Refusal != nil {
				off.Rule, off.Source = string(op.Refusal.Rule), op.Refusal.Rule.Source()
			}
			if math.IsInf(off.PenaltyS, 1) {
				off.PenaltyS = -1
			}
			d.Off = append(d.Off, off)
		}
		list = append(list, d)
	}
	return list
}
