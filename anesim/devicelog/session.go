package devicelog

import (
	"bytes"
	"fmt"
	"strings"

	"anelab/anesim"
	"anelab/internal/format"
)

// Format names what a file was taken for.
type Format string

// The formats that are told apart.
const (
	FormatCSV         Format = "measurements csv"
	FormatLog         Format = "console log"
	FormatReport      Format = "device report"
	FormatAnemllBench Format = "anemll-bench json"
	FormatInstruments Format = "instruments table"
	FormatUnknown     Format = "unknown"
)

// Context is what a log leaves out.
type Context struct {
	Experiment  string // name of the session; runs in one log get a number behind it
	Date        string // "2026-04-14": decides where caches were copied when CopyBack is empty
	Device      string // as device files claim it: "iPhone 17 Pro"
	Model       string // "gemma-4-e2b"
	Context     int
	WeightBits  int
	GroupSize   int
	CopyBack    anesim.CopyBack // "" = by date
	Layouts     map[int]string  // by number of chunks, in the form of the layout column; nil = those of E2B's runtime
	QueryTokens int             // 0 = 1
}

// Session is what a file holds.
type Session struct {
	Format       Format
	Measurements []anesim.Measurement
	Calls        []Call   // timed calls of programs that are no chunk of a layout
	Audits       []Audit  // placement, one per line of the log
	Lines        int      // of text
	Skipped      int      // lines that say nothing to us
	Doubts       []string // what may be read, but should be looked at
}

// Call is one timed program from elsewhere.
type Call struct {
	Name        string
	Device      string
	Backend     string // "ANE", "CPU", "GPU", "ALL"
	WeightBytes float64
	Seconds     float64
}

// Audit is a placement line.
type Audit struct {
	Line    int
	Chunk   string // "chunk4", or "" for the summary
	Off     int    // ops that are not on the Neural Engine
	Ops     int
	Refused bool // more than 5 % are off: the run must not be reported
}

// maxOff is the share of ops off the Neural Engine above which times say nothing of it.
const maxOff = 0.05

// maxFile bounds what is read into memory.
const maxFile = 64 << 20

// Detect tells a format by its content.
func Detect(data []byte) Format {
	text := bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\ufeff")), " \t\r\n")
	head := string(text[:min(len(text), 4096)])
	first, _, _ := strings.Cut(head, "\n")
	switch {
	case strings.HasPrefix(head, "{") && bytes.Contains(data, []byte(`"anelab-device-report/`)):
		return FormatReport
	case strings.HasPrefix(head, "{") || strings.HasPrefix(head, "[{"):
		if bytes.Contains(data, []byte(`"inference_time_ms"`)) {
			return FormatAnemllBench
		}
		return FormatUnknown
	case strings.HasPrefix(first, "experiment,") || strings.Contains(first, ",experiment,"):
		return FormatCSV
	case tags.Match(data):
		return FormatLog
	case isTableHeader(first):
		return FormatInstruments
	}
	return FormatUnknown
}

// Read reads a file of any format.
func Read(path string, data []byte, c Context) (Session, error) {
	if len(data) > maxFile {
		return Session{}, &format.Error{Path: path, Got: fmt.Sprintf("%d bytes", len(data)), Want: "a log of at most 64 MiB"}
	}
	switch f := Detect(data); f {
	case FormatCSV:
		rows, err := anesim.ReadMeasurements(path, bytes.NewReader(data))
		return Session{Format: f, Measurements: rows, Lines: bytes.Count(data, []byte("\n"))}, err
	case FormatLog:
		return readLog(path, data, c)
	case FormatReport:
		return readReport(path, data)
	case FormatAnemllBench:
		return readAnemllBench(path, data)
	case FormatInstruments:
		return readTable(path, data, c)
	}
	return Session{}, &format.Error{Path: path, Got: "text of no known kind",
		Want: "a measurements CSV, console lines with [Profile], a device report, anemll-bench JSON, or an Instruments table"}
}

// layout is the layout column for so many chunks.
func (c *Context) layout(chunks int) (string, bool) {
	layouts := c.Layouts
	if layouts == nil {
		layouts = runtimeLayouts
	}
	l, ok := layouts[chunks]
	return l, ok
}

// runtimeLayouts are what the runtime ships for E2B (spec forward.md §4.2 to §4.5). Three chunks are Topology II unless a
// [Load] line says otherwise.
var runtimeLayouts = map[int]string{
	1: "0-34+head",
	2: "0-14|15-34+head",
	3: "0-7|8-24|25-34+head",
	4: "0-7|8-14|15-24|25-34+head",
}

// topologyI is the other three-chunk layout of the runtime.
const topologyI = "0-14|15-24|25-34+head"

// measurement starts a row with what the context knows.
func (c *Context) measurement(line int, experiment, layout string) anesim.Measurement {
	m := anesim.Measurement{Line: line, Experiment: experiment, SessionDate: c.Date, Source: "log", Device: c.Device, Model: c.Model,
		KVMode: "explicit-io", Layout: layout, Context: c.Context, QueryTokens: max(1, c.QueryTokens), WeightBits: c.WeightBits, GroupSize: c.GroupSize,
		ColdWarm: "warm", Quality: "A", Timed: true}
	if c.CopyBack != "" {
		m.Note = "copyback=" + string(c.CopyBack)
	}
	return m
}

// chunkRow fills in the layers of chunk k, counted from 0, from the layout column.
func chunkRow(m anesim.Measurement, k int, seconds float64) anesim.Measurement {
	parts := strings.Split(m.Layout, "|")
	m.Component, m.Seconds = fmt.Sprint(k+1), seconds
	text, head := strings.CutSuffix(parts[k], "+head")
	m.HasHead = head || parts[k] == "head"
	m.HasPLE = k == 0
	var lo, hi int
	if n, _ := fmt.Sscanf(text, "%d-%d", &lo, &hi); n == 2 {
		m.Lo, m.Hi = lo, hi+1
	}
	return m
}
