package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"

	"anelab/anesim"
	"anelab/anesim/devices"
	"anelab/cmd/simulate/internal/view"
)

// explain takes a plan's price apart.
func (s *subject) explain(r *view.Plan, w anesim.Workload) *view.Breakdown {
	used := map[string]bool{}
	for _, x := range r.Prediction.Terms() {
		used[x.Term] = true
	}
	file, text := s.deviceFile()
	lines := constantLines(text)
	out := &view.Breakdown{Plan: *r, Rules: anesim.EmpiricalFactors(r.Plan, s.device, w)}
	for t := range anesim.NumTerms {
		if !used[t.String()] {
			continue
		}
		c := &s.device.Constants[t]
		out.Constants = append(out.Constants, view.SourcedConstant{Name: t.String(), Value: c.Value, SD: c.SD, Unit: c.Unit, Confidence: c.Confidence,
			Source: c.Source, Prior: c.Prior.Source, File: file, Line: lines[t.String()]})
	}
	return out
}

// deviceFile is where the constants are written down: the file that was given, or the one that comes with the program.
func (s *subject) deviceFile() (name string, text []byte) {
	if slices.Contains(deviceNames(), s.deviceName) {
		return s.device.Name + ".yaml", devices.Write(s.device)
	}
	text, err := os.ReadFile(s.deviceName)
	if err != nil {
		return filepath.Base(s.deviceName), nil // it was read a moment ago; without it lines are unknown
	}
	return filepath.Base(s.deviceName), text
}

// constantLines finds the line of each constant.
func constantLines(text []byte) map[string]int {
	lines := map[string]int{}
	for i, line := range bytes.Split(text, []byte("\n")) {
		name, _, isKey := bytes.Cut(bytes.TrimSpace(line), []byte(":"))
		if _, isTerm := anesim.ParseTerm(string(name)); isKey && isTerm && lines[string(name)] == 0 {
			lines[string(name)] = i + 1
		}
	}
	return lines
}
