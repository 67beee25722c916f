package main

import (
	"cmp"
	"maps"
	"slices"

	"anelab/anesim"
	"anelab/chunking"
	"anelab/cmd/simulate/internal/results"
	"anelab/cmd/simulate/internal/search"
	"anelab/internal/format"
)

// recorded is the records of an earlier sweep, by context.
type recorded struct {
	files      []string
	conditions results.Conditions
	byContext  map[int][]results.Record
}

// records reads files and takes model, device and copy-back from them where no flag says otherwise.
func (o *reportOptions) records(files []string) (*recorded, error) {
	r := &recorded{files: files, byContext: map[int][]results.Record{}}
	if len(files) == 0 {
		return r, nil
	}
	var set results.Set
	for _, path := range files {
		err := addResults(&set, path, func(x results.Record, _ []byte) error {
			r.byContext[x.Context] = append(r.byContext[x.Context], x)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if set.Len() == 0 {
		return nil, &format.Error{Path: files[0], Got: "no records", Want: "records of simulate sweep --format jsonl"}
	}
	r.conditions = set.Conditions
	o.copyBack.value = string(r.conditions.CopyBack)
	if o.subject.model == defaultModel {
		o.subject.model = r.conditions.Model
	}
	if o.subject.device == "" {
		o.subject.device = r.conditions.Device
	}
	return r, nil
}

// rankings orders the records of every context. They must be of the model and the device in hand: the rest of the page is.
func (r *recorded) rankings(s *subject) ([]search.Ranking, error) {
	if source := s.source(); source.Model != r.conditions.Model || source.DeviceHash != r.conditions.DeviceHash {
		return nil, &format.Error{Path: r.files[0], Got: "records of " + r.conditions.String(), Want: source.Model + " on " + source.Device + " (" + source.DeviceHash + ")",
			Fix: "name the model and the device file of the sweep with --model and --device"}
	}
	var all []search.Ranking
	for _, length := range slices.Sorted(maps.Keys(r.byContext)) {
		ranking, err := ranked(s.model, length, r.byContext[length])
		if err != nil {
			return nil, err
		}
		all = append(all, ranking)
	}
	return all, nil
}

// ranked is the ranking of records at one context: those that the device is known to run, fastest first.
func ranked(m *chunking.Model, length int, records []results.Record) (search.Ranking, error) {
	r := search.Ranking{Context: length, Priced: len(records)}
	slices.SortStableFunc(records, func(a, b results.Record) int { return cmp.Compare(a.TimeS, b.TimeS) })
	rank := 0
	for i := range records {
		x := &records[i]
		switch {
		case len(x.RefusedBy) > 0:
			r.Refused++
		case len(x.WarnedBy) > 0:
			r.Untried++
		default:
			rank++
		}
		runs := len(x.RefusedBy) == 0 && len(x.WarnedBy) == 0
		if x.Preset == "" && (!runs || len(r.Best) == bestShown) {
			continue
		}
		l, err := chunking.Parse(x.Layout, m)
		if err != nil {
			return r, err
		}
		l.Context = length
		one := search.Ranked{Preset: x.Preset, Layout: l, Refused: x.RefusedBy, Doubted: x.WarnedBy,
			Quote: anesim.Quote{Seconds: x.TimeS, TimeRange: x.TimeRange, BoundBy: x.BoundBy, BoundShare: x.BoundShare}}
		if runs {
			one.Rank = rank
		}
		if runs && len(r.Best) < bestShown {
			r.Best = append(r.Best, one)
		}
		if x.Preset != "" {
			r.Presets = append(r.Presets, one)
		}
	}
	return r, nil
}
