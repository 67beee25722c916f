package devicelog

import (
	"encoding/json"
	"fmt"
	"math"

	"anelab/internal/format"
)

// benchFile is what anemll-bench embeds in its reports and mails: field names of anemll_bench/reports/report_generator.py and
// models/benchmark_result.py. A list of results without the envelope is read too.
type benchFile struct {
	System  benchSystem   `json:"system_info"`
	Results []benchResult `json:"results"`
}

type benchSystem struct {
	MacModel   string `json:"mac_model"`
	DeviceName string `json:"device_name"`
	CPU        struct {
		Brand string `json:"brand"`
	} `json:"cpu"`
	MacOS string `json:"macos_version"`
}

type benchResult struct {
	Model       string      `json:"model_name"`
	Backend     string      `json:"backend"`
	TimeMs      float64     `json:"inference_time_ms"`
	Throughput  float64     `json:"throughput_gb_s"`
	ThroughputO float64     `json:"throughput_gbps"` // older name
	SizeMB      float64     `json:"model_size_mb"`
	System      benchSystem `json:"system_info"` // of a result without an envelope
}

// The chip says most: "Apple M4 Pro". Model identifiers such as Mac16,11 need a table that grows every year.
func (s *benchSystem) device() string {
	for _, name := range []string{s.CPU.Brand, s.DeviceName, s.MacModel} {
		if name != "" {
			return name
		}
	}
	return ""
}

// readAnemllBench reads single programs timed by anemll-bench. They are no chunks of a layout, so they become calls.
func readAnemllBench(path string, data []byte) (Session, error) {
	var f benchFile
	if err := json.Unmarshal(data, &f); err != nil {
		if err2 := json.Unmarshal(data, &f.Results); err2 != nil {
			return Session{}, &format.Error{Path: path, Err: err, Want: "anemll-bench JSON"}
		}
	}
	s := Session{Format: FormatAnemllBench}
	for i, r := range f.Results {
		device := f.System.device()
		if device == "" {
			device = r.System.device()
		}
		if !(r.TimeMs > 0) || math.IsInf(r.TimeMs, 0) || r.SizeMB < 0 {
			return Session{}, &format.Error{Path: path, Field: fmt.Sprintf("results[%d]", i), Got: fmt.Sprintf("%v ms, %v MB", r.TimeMs, r.SizeMB), Want: "a time above zero and a size"}
		}
		call := Call{Name: r.Model, Device: device, Backend: r.Backend, WeightBytes: r.SizeMB * 1e6, Seconds: r.TimeMs / 1e3}
		if call.WeightBytes == 0 { // the tool prints 0 when it could not find the file
			s.Doubts = append(s.Doubts, fmt.Sprintf("results[%d]: %s has no size: its time says nothing of a stream", i, r.Model))
		} else if rate, said := call.WeightBytes/call.Seconds/1e9, max(r.Throughput, r.ThroughputO); said > 0 && math.Abs(rate/said-1) > agree {
			s.Doubts = append(s.Doubts, fmt.Sprintf("results[%d]: %.1f MB in %.3g ms are %.1f GB/s, the report says %.1f", i, r.SizeMB, r.TimeMs, rate, said))
		}
		s.Calls = append(s.Calls, call)
	}
	if len(s.Calls) == 0 {
		return Session{}, &format.Error{Path: path, Field: "results", Got: "none", Want: "at least one timed model"}
	}
	return s, nil
}
