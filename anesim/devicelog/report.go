package devicelog

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"anelab/anesim"
	"anelab/internal/format"
)

// ReportVersion is the format of device reports that is read. Package coreml/device writes them.
const ReportVersion = "anelab-device-report/1"

// DeviceReport is the JSON that scripts/device_validate.sh prints: raw times of every call, so that nothing has to be trusted but a
// clock. Times are milliseconds because that is what people compare them with.
type DeviceReport struct {
	FormatVersion string        `json:"format_version"` // [ReportVersion]
	Experiment    string        `json:"experiment"`     // name of the session
	Date          string        `json:"date"`           // "2026-04-14"
	Device        string        `json:"device"`         // as device files claim it
	SoC           string        `json:"soc"`
	OS            string        `json:"os"`
	Model         string        `json:"model"`
	Units         string        `json:"units"` // that Core ML could choose from: "cpu+ane"
	Context       int           `json:"context"`
	WeightBits    int           `json:"weight_bits"`
	GroupSize     int           `json:"group_size"`
	CopyBack      string        `json:"copyback"` // "sync", "async" or "none"
	Layout        string        `json:"layout"`   // "0-7|8-24|25-34+head"; "" if the models are no chunks
	Chunks        []ReportChunk `json:"chunks"`
	StepMs        []float64     `json:"step_ms"` // whole decode steps; may be empty
	Thermal       string        `json:"thermal"` // "nominal", "fair", "serious" or "critical"
	Audit         *ReportAudit  `json:"audit"`   // of MLComputePlan; may be absent
	Models        []ReportModel `json:"models"`  // may be absent
}

// ReportChunk is the calls of one chunk, in the order in which they were made. The first ones are cold.
type ReportChunk struct {
	Index int       `json:"index"` // from 1, as in the layout
	Ms    []float64 `json:"ms"`
}

// ReportAudit counts ops off the Neural Engine.
type ReportAudit struct {
	Off int `json:"off"`
	Ops int `json:"ops"`
}

// ReportModel is one package of the session.
type ReportModel struct {
	Path        string          `json:"path"`
	Function    string          `json:"function"`
	WeightBytes int64           `json:"weight_bytes"`
	CompileMs   float64         `json:"compile_ms"`
	LoadMs      float64         `json:"load_ms"`
	Ms          []float64       `json:"ms"`
	CopyMs      []float64       `json:"copy_ms"`
	Placement   json.RawMessage `json:"placement"` // says no more than the audit to a calibration
	Cases       []ReportCase    `json:"cases"`
	Error       string          `json:"error"`
}

// ReportCase is one call with known inputs. Its outputs are for package coreml/device to read.
type ReportCase struct {
	Name     string          `json:"name"`
	Function string          `json:"function"`
	Outputs  json.RawMessage `json:"outputs"`
	Within   *bool           `json:"within"`
	Error    string          `json:"error"`
}

// warmUp is how many calls of a chunk are cold: load, first placement, clock ramp (spec ane.md A10).
const warmUp = 4

// leastCalls is the least number of warm calls whose median is worth a row of quality A.
const leastCalls = 10

// readReport reads a device report.
func readReport(path string, data []byte) (Session, error) {
	var r DeviceReport
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return Session{}, &format.Error{Path: path, Err: err, Want: "a device report"}
	}
	if r.FormatVersion != ReportVersion {
		return Session{}, &format.Error{Path: path, Field: "format_version", Got: strconv.Quote(r.FormatVersion), Want: strconv.Quote(ReportVersion)}
	}
	needed := map[string]string{"device": r.Device, "model": r.Model, "layout": r.Layout, "experiment": r.Experiment}
	if len(r.Models) > 0 && len(r.Chunks) == 0 { // single packages, which belong to no model
		delete(needed, "layout")
		delete(needed, "model")
	}
	for field, value := range needed {
		if value == "" {
			return Session{}, &format.Error{Path: path, Field: field, Got: "nothing", Want: "a value"}
		}
	}
	if !slices.Contains([]string{"sync", "async", "none"}, r.CopyBack) {
		return Session{}, &format.Error{Path: path, Field: "copyback", Got: strconv.Quote(r.CopyBack), Want: `"sync", "async" or "none"`}
	}
	read := r.session
	if r.Layout == "" {
		read = r.calls
	}
	s, err := read(path)
	s.Doubts = append(s.Doubts, r.failures()...)
	return s, err
}

// calls are the times of packages that are no chunks.
func (r *DeviceReport) calls(path string) (Session, error) {
	s := Session{Format: FormatReport}
	for _, m := range r.Models {
		if len(m.Ms) == 0 {
			continue
		}
		seconds, _, err := medianOfWarm(m.Ms) // an op by itself may well be that short
		if err != nil {
			err.Path, err.Field = path, "models, "+m.Path
			return Session{}, err
		}
		s.Calls = append(s.Calls, Call{Name: m.Path, Device: r.Device, Backend: r.Units, WeightBytes: float64(m.WeightBytes), Seconds: seconds})
	}
	if len(s.Calls) == 0 {
		return s, &format.Error{Path: path, Field: "models", Got: "no times", Want: "times of at least one package"}
	}
	return s, nil
}

// failures are what the session says went wrong on the device.
func (r *DeviceReport) failures() []string {
	var list []string
	for _, m := range r.Models {
		if m.Error != "" {
			list = append(list, m.Path+": "+m.Error)
		}
		for _, c := range m.Cases {
			switch {
			case c.Error != "":
				list = append(list, fmt.Sprintf("%s, case %s: %s", m.Path, c.Name, c.Error))
			case c.Within != nil && !*c.Within:
				list = append(list, fmt.Sprintf("%s, case %s: outputs are further from the expected ones than allowed", m.Path, c.Name))
			}
		}
	}
	return list
}

// Runs that say nothing of the engine are read and filed as quality X, with the reason, instead of being dropped.
func (r *DeviceReport) session(path string) (Session, error) {
	c := Context{Experiment: r.Experiment, Date: r.Date, Device: r.Device, Model: r.Model, Context: r.Context, WeightBits: r.WeightBits,
		GroupSize: r.GroupSize, CopyBack: anesim.CopyBack(r.CopyBack)}
	s := Session{Format: FormatReport}
	m := c.measurement(1, r.Experiment, r.Layout)
	m.SoC, m.OS, m.Source = r.SoC, r.OS, "device report"
	if r.Audit != nil && float64(r.Audit.Off) > maxOff*float64(r.Audit.Ops) {
		m.Quality, m.Note = "X", m.Note+"; more than 5 % of ops off the Neural Engine"
		s.Doubts = append(s.Doubts, fmt.Sprintf("%d of %d ops are off the Neural Engine: not for fitting", r.Audit.Off, r.Audit.Ops))
	}
	if r.Thermal == "serious" || r.Thermal == "critical" {
		m.Quality, m.Note = "X", m.Note+"; thermal state "+r.Thermal
		s.Doubts = append(s.Doubts, "thermal state "+r.Thermal+": not for fitting")
	}
	parts := strings.Count(r.Layout, "|") + 1
	for _, chunk := range r.Chunks {
		if chunk.Index < 1 || chunk.Index > parts {
			return Session{}, &format.Error{Path: path, Field: "chunks", Got: fmt.Sprintf("index %d", chunk.Index), Want: fmt.Sprintf("1 to %d", parts)}
		}
		seconds, quality, err := warmMedian(chunk.Ms)
		if err != nil {
			err.Path, err.Field = path, fmt.Sprintf("chunks, index %d", chunk.Index)
			return Session{}, err
		}
		row := chunkRow(m, chunk.Index-1, seconds)
		if row.Quality == "A" {
			row.Quality = quality
		}
		s.Measurements = append(s.Measurements, row)
	}
	if len(r.StepMs) > 0 {
		seconds, _, err := warmMedian(r.StepMs)
		if err != nil {
			err.Path, err.Field = path, "step_ms"
			return Session{}, err
		}
		step := m
		step.Component, step.Seconds, step.HasPLE, step.HasHead = "step", seconds, true, true
		s.Measurements = append(s.Measurements, step)
	}
	if len(s.Measurements) == 0 {
		return Session{}, &format.Error{Path: path, Field: "chunks", Got: "no times", Want: "times of at least one chunk"}
	}
	return s, nil
}

// warmMedian is the time of a chunk. No chunk takes less than a tenth of a millisecond: such times are seconds.
func warmMedian(ms []float64) (seconds float64, quality string, fault *format.Error) {
	seconds, calls, fault := medianOfWarm(ms)
	switch {
	case fault != nil:
		return 0, "", fault
	case seconds < 0.1e-3:
		return 0, "", &format.Error{Got: fmt.Sprintf("%g ms", 1e3*seconds), Want: "milliseconds", Fix: "no call is that short: if these are seconds, multiply by 1000"}
	case calls < leastCalls:
		return seconds, "B", nil
	}
	return seconds, "A", nil
}

// medianOfWarm drops the cold calls. Medians, because a phone that does something else for a moment must not move a row.
func medianOfWarm(ms []float64) (seconds float64, calls int, fault *format.Error) {
	for _, x := range ms {
		if math.IsNaN(x) || math.IsInf(x, 0) || x <= 0 || x > 60e3 {
			return 0, 0, &format.Error{Got: fmt.Sprint(x), Want: "milliseconds above zero"}
		}
	}
	if len(ms) <= warmUp {
		return 0, 0, &format.Error{Got: fmt.Sprintf("%d calls", len(ms)), Want: fmt.Sprintf("more than %d: the first ones are cold", warmUp)}
	}
	warm := slices.Clone(ms[warmUp:])
	slices.Sort(warm)
	n := len(warm)
	return (warm[(n-1)/2] + warm[n/2]) / 2 / 1e3, n, nil
}
