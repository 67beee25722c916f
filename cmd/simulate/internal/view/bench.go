package view

import (
	"fmt"
	"io"
	"path/filepath"
	"runtime"

	"anelab/cmd/simulate/internal/texttab"
	"anelab/cmd/simulate/internal/timing"
)

// Bench is the speed of one model on this machine.
type Bench struct {
	Made               Made
	Checkpoint, Mode   string
	Kernel             string
	Threads            int
	FileBytes          int64 // 0 for a directory
	StepBytes          int64 // weights read for a token
	KVBytes            int64 // of the longest context
	PeakRSSBytes       int64
	LoadSeconds        float64 // until the first token
	RoofBytesPerSecond float64
	Tests              []timing.Test
}

// Page is one line per test.
func (r *Bench) Page(p *texttab.Page) {
	p.Head(filepath.Base(r.Checkpoint), "mode "+r.Mode, plural(r.Threads, "thread"), "kernels "+r.Kernel)
	p.Gap()
	t := texttab.NewTable(texttab.L("test"), texttab.R("tok/s"), texttab.L("range"), texttab.R("weights"), texttab.R("of the roof"))
	for i := range r.Tests {
		x := &r.Tests[i]
		rate, share := "", ""
		if x.Tokens > 0 {
			rate, share = sig(r.stream(x)/1e9)+" GB/s", fmt.Sprintf("%.0f%%", 100*r.stream(x)/r.RoofBytesPerSecond)
		}
		t.Row(x.Name, sig(x.Rate()), sig(x.Slowest())+"–"+sig(x.Fastest()), rate, share)
	}
	p.Table(t)
	p.Gap()
	p.Line("%.0f MB of weights for a token; this machine reads %.1f GB/s with %s", float64(r.StepBytes)/1e6, r.RoofBytesPerSecond/1e9, plural(r.Threads, "thread"))
	p.Line("first token after %.2f s; %.0f MB of keys and values; peak memory %.0f MB", r.LoadSeconds, float64(r.KVBytes)/1e6, float64(r.PeakRSSBytes)/1e6)
}

// stream is the weight bytes per second of a decoding test.
func (r *Bench) stream(t *timing.Test) float64 { return float64(r.StepBytes) * t.Rate() }

// benchTest is one test of the document.
type benchTest struct {
	Name            string    `json:"test"`
	PromptTokens    int       `json:"prompt_tokens"`
	GenerateTokens  int       `json:"generate_tokens"`
	Depth           int       `json:"depth"`
	TokPerS         float64   `json:"tok_s"`
	SlowestTokPerS  float64   `json:"tok_s_slowest"`
	FastestTokPerS  float64   `json:"tok_s_fastest"`
	TimesS          []float64 `json:"times_s"`
	WeightBytesPerS float64   `json:"weight_bytes_s,omitempty"`
	RoofShare       float64   `json:"roof_share,omitempty"`
}

// Document is everything, in SI units.
func (r *Bench) Document() any {
	tests := []benchTest{}
	for i := range r.Tests {
		x := &r.Tests[i]
		t := benchTest{Name: x.Name, PromptTokens: x.Prompt, GenerateTokens: x.Tokens, Depth: x.Depth, TokPerS: x.Rate(),
			SlowestTokPerS: x.Slowest(), FastestTokPerS: x.Fastest(), TimesS: x.Seconds}
		if x.Tokens > 0 {
			t.WeightBytesPerS, t.RoofShare = r.stream(x), r.stream(x)/r.RoofBytesPerSecond
		}
		tests = append(tests, t)
	}
	return struct {
		Made
		Checkpoint    string      `json:"checkpoint"`
		Mode          string      `json:"mode"`
		Kernel        string      `json:"kernel"`
		Threads       int         `json:"threads"`
		FileBytes     int64       `json:"file_bytes"`
		StepBytes     int64       `json:"step_bytes"`
		KVBytes       int64       `json:"kv_bytes"`
		PeakRSSBytes  int64       `json:"peak_rss_bytes"`
		FirstTokenS   float64     `json:"first_token_s"`
		RoofBytesPerS float64     `json:"roof_bytes_s"`
		Tests         []benchTest `json:"tests"`
	}{r.Made, r.Checkpoint, r.Mode, r.Kernel, r.Threads, r.FileBytes, r.StepBytes, r.KVBytes, r.PeakRSSBytes, r.LoadSeconds, r.RoofBytesPerSecond, tests}
}

// Header of the records.
func (r *Bench) Header() []string {
	return []string{"test", "prompt_tokens", "generate_tokens", "depth", "tok_s", "tok_s_slowest", "tok_s_fastest"}
}

// Records are the tests.
func (r *Bench) Records() [][]string {
	var all [][]string
	for i := range r.Tests {
		x := &r.Tests[i]
		all = append(all, []string{x.Name, fmt.Sprint(x.Prompt), fmt.Sprint(x.Tokens), fmt.Sprint(x.Depth), exact(x.Rate()), exact(x.Slowest()), exact(x.Fastest())})
	}
	return all
}

// Benchmark has a line for every run, so that benchstat sees the spread.
func (r *Bench) Benchmark(w io.Writer) error {
	fmt.Fprintf(w, "goos: %s\ngoarch: %s\nkernel: %s\nmode: %s\n", runtime.GOOS, runtime.GOARCH, r.Kernel, r.Mode)
	for i := range r.Tests {
		x := &r.Tests[i]
		step := "prefill"
		if x.Tokens > 0 {
			step = "decode"
		}
		n := x.Prompt + x.Tokens
		for _, s := range x.Seconds {
			if _, err := fmt.Fprintf(w, "BenchmarkModel/step=%s/tokens=%d/depth=%d/threads=%d %d %.0f ns/op %.3f tok/s\n", step, n, x.Depth, r.Threads, n, 1e9*s/float64(n), float64(n)/s); err != nil {
				return err
			}
		}
	}
	return nil
}
