package anesim

import (
	"fmt"
	"sort"

	"anelab/chunking"
)

// What is fitted: decode with explicit KV I/O of the one model whose chunks were timed on more than one layout.
const (
	fitModel  = "gemma-4-e2b"
	fitKVMode = "explicit-io"
)

// asyncSince is the day on which the KV copy left the chunk timers (git bf494b1; data README §3).
const asyncSince = "2026-04-24"

// copyBackByDate is the runtime of the day, for rows whose note does not say.
func (m Measurement) copyBackByDate() CopyBack {
	if m.SessionDate != "" && m.SessionDate < asyncSince {
		return CopyBackSync
	}
	return CopyBackAsync
}

// copyBack is what the note says, or else the day.
func (m Measurement) copyBack() CopyBack {
	if c, said := m.CopyBack(); said {
		return c
	}
	return m.copyBackByDate()
}

// unfit says why a row is not one that constants are fitted to; "" if it is.
func (m Measurement) unfit() string {
	switch {
	case m.Model != fitModel:
		return "other model: " + m.Model
	case m.Quality == "X":
		return "quality X"
	case m.ColdWarm != "warm":
		return "not warm"
	case m.KVMode != fitKVMode:
		return "KV mode " + m.KVMode
	case m.QueryTokens != 1:
		return fmt.Sprintf("%d query tokens", m.QueryTokens)
	case m.Component == "step":
		return "whole step (host time is fitted on it)"
	case m.chunkNumber() == 0:
		return "part of the host: " + m.Component
	case m.chunkNumber() > 4:
		return "chunk number above 4"
	case m.Layout == "":
		return "no layout given"
	case m.Context == 0:
		return "no context given"
	case m.Seconds <= 0:
		return "no time printed"
	}
	return ""
}

func (m Measurement) fittable() bool { return m.unfit() == "" }

// ExcludedClass counts rows that are shown but not used, with the one reason they share.
type ExcludedClass struct {
	Set    string `json:"set"` // "train" or "score": the file that lines count in
	Reason string `json:"reason"`
	Rows   int    `json:"rows"`
	Lines  []int  `json:"lines"`
}

// classes collects excluded rows by reason.
type classes map[string]*ExcludedClass

// Lines are kept, so that every excluded row can be found again in its file.
func (c classes) add(m Measurement, reason string) {
	if c[reason] == nil {
		c[reason] = &ExcludedClass{Reason: reason}
	}
	c[reason].Rows++
	c[reason].Lines = append(c[reason].Lines, m.Line)
}

// sorted lists the classes of one file, largest first.
func (c classes) sorted(set string) []ExcludedClass {
	all := []ExcludedClass{}
	for _, class := range c {
		class.Set = set
		all = append(all, *class)
	}
	sort.Slice(all, func(i, j int) bool {
		if all[i].Rows != all[j].Rows {
			return all[i].Rows > all[j].Rows
		}
		return all[i].Reason < all[j].Reason
	})
	return all
}

// sample is a timed chunk beside what its plan says about it.
type sample struct {
	Measurement
	family int // index of its device
	plan   *chunking.Plan
	chunk  int // index in the plan
	q      Quantities
}

func (s *sample) totals() *chunking.Totals { return &s.plan.Chunks[s.chunk].Totals }

// sampler turns rows into samples. Plans of one model share a planner and with it their chunks.
type sampler struct {
	devices  []Device
	models   map[string]*chunking.Model
	planners map[string]*chunking.Planner
	excluded classes
}

// Plans are made per model by one planner: a measurements file times the same few chunks again and again.
func newSampler(devices []Device, models map[string]*chunking.Model) *sampler {
	s := &sampler{devices: devices, models: models, planners: map[string]*chunking.Planner{}, excluded: classes{}}
	for name, m := range models {
		s.planners[name] = chunking.NewPlanner(m)
	}
	return s
}

// family is the index of the device whose measurements carry this name; −1 if no device file claims it.
func (s *sampler) family(device string) int {
	for i := range s.devices {
		if s.devices[i].measures(device) {
			return i
		}
	}
	return -1
}

// samples picks the rows that can be fitted; every other row goes to a class.
func (s *sampler) samples(rows []Measurement) []sample {
	var all []sample
	for _, m := range rows {
		one, reason := s.sample(m)
		if reason != "" {
			s.excluded.add(m, reason)
			continue
		}
		all = append(all, one)
	}
	return all
}

// sample plans the row's layout and picks the row's chunk; the reason says why it could not.
func (s *sampler) sample(m Measurement) (one sample, reason string) {
	if reason := m.unfit(); reason != "" {
		return sample{}, reason
	}
	family := s.family(m.Device)
	if family < 0 {
		return sample{}, "no device file for " + m.Device
	}
	if s.models[m.Model] == nil {
		return sample{}, "no configuration of model " + m.Model
	}
	layout, err := m.layout(s.models[m.Model])
	if err != nil {
		return sample{}, "no plan: " + err.Error()
	}
	plan, err := s.planners[m.Model].Plan(layout)
	if err != nil {
		return sample{}, "no plan: " + err.Error()
	}
	k := m.chunkNumber() - 1
	if k >= len(plan.Chunks) {
		return sample{}, "no such chunk in the layout"
	}
	return sample{Measurement: m, family: family, plan: plan, chunk: k, q: planQuantities(plan, m.copyBack())[k]}, ""
}
