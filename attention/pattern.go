package attention

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"anelab/internal/format"
)

// Pattern is what DuoAttention's training found: how much every head needs to see everything (spec forward.md §7.1).
type Pattern struct {
	Path         string
	Values       [][]float64 // [layers, heads], 0 … 1
	Sink, Recent int         // that the heads were trained with
}

// Names of the files of a pattern folder.
const (
	patternFile   = "full_attention_heads.tsv"
	patternConfig = "config.json"
)

// limits of a pattern file.
const (
	maxPatternBytes = 1 << 24
	maxPatternCells = 1 << 20
)

// OpenPattern reads a pattern folder, or its table with config.json beside it.
func OpenPattern(path string) (*Pattern, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, patternFile)
	}
	table, err := readSmall(path)
	if err != nil {
		return nil, err
	}
	p, err := ParsePattern(path, table)
	if err != nil {
		return nil, err
	}
	config := filepath.Join(filepath.Dir(path), patternConfig)
	text, err := readSmall(config)
	if err != nil {
		return nil, err
	}
	return p, p.sizes(config, text)
}

// readSmall reads a file that cannot be large.
func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxPatternBytes {
		return nil, &format.Error{Path: path, Got: fmt.Sprintf("%d bytes", info.Size()), Want: fmt.Sprintf("at most %d", maxPatternBytes)}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, &format.Error{Path: path, Err: err, Fix: fmt.Sprintf("a pattern is %s with %s beside it", patternFile, patternConfig)}
	}
	return text, nil
}

// ParsePattern reads the table: a line per layer, a number per head, tabs between. Numbers slightly outside 0 … 1, as training leaves
// them, are moved inside.
func ParsePattern(path string, table []byte) (*Pattern, error) {
	p := &Pattern{Path: path}
	lines := bufio.NewScanner(bytes.NewReader(table))
	lines.Buffer(nil, maxPatternBytes)
	for cells := 0; lines.Scan(); {
		text := strings.TrimRight(lines.Text(), " \t\r")
		if text == "" {
			continue
		}
		row, err := p.row(text)
		if err != nil {
			return nil, err
		}
		if cells += len(row); cells > maxPatternCells {
			return nil, &format.Error{Path: path, Got: "a table without end", Want: fmt.Sprintf("at most %d numbers", maxPatternCells)}
		}
		p.Values = append(p.Values, row)
	}
	if err := lines.Err(); err != nil || len(p.Values) == 0 {
		return nil, &format.Error{Path: path, Got: "no rows", Want: "a line of numbers for every layer", Err: err}
	}
	return p, nil
}

func (p *Pattern) row(text string) ([]float64, error) {
	line := strconv.Itoa(len(p.Values) + 1)
	fields := strings.Fields(text)
	row := make([]float64, len(fields))
	for i, f := range fields {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, &format.Error{Path: p.Path, Field: "line " + line, Got: strconv.Quote(f), Want: "a number"}
		}
		row[i] = min(max(v, 0), 1)
	}
	if len(p.Values) > 0 && len(row) != len(p.Values[0]) {
		return nil, &format.Error{Path: p.Path, Field: "line " + line, Got: fmt.Sprintf("%d numbers", len(row)), Want: fmt.Sprintf("%d as in the first line", len(p.Values[0]))}
	}
	return row, nil
}

// sizes takes sinks and window from the training's arguments.
func (p *Pattern) sizes(path string, text []byte) error {
	var c struct {
		Sink   int `json:"sink_size"`
		Recent int `json:"recent_size"`
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return &format.Error{Path: path, Err: err}
	}
	if c.Sink < 0 || c.Recent < 1 || c.Sink > most || c.Recent > most {
		return &format.Error{Path: path, Got: fmt.Sprintf("sink_size %d, recent_size %d", c.Sink, c.Recent), Want: "at least 0 and 1"}
	}
	p.Sink, p.Recent = c.Sink, c.Recent
	return nil
}

// PatternLayer is a layer of the model that a pattern is for.
type PatternLayer struct {
	Index          int
	Heads, KVHeads int
	Full           bool // sees everything by itself; others have nothing to give up
}

// Policies turns a pattern into policies of full layers: the given share of their heads streams, those with the least value. A
// pattern has a row for every layer or for every full one, and a column for every KV head, or for every query head, which can only
// mask. The share counts over full layers alone: rows of sliding layers say nothing. Of equal values the earlier head stays full,
// where the published code tosses a coin.
func (p *Pattern) Policies(layers []PatternLayer, share float64) (map[int]Policy, error) {
	rows, err := p.rowsOf(layers)
	if err != nil {
		return nil, err
	}
	gates := p.gates(rows, share)
	all := map[int]Policy{}
	i := 0
	for _, y := range layers {
		if !y.Full {
			continue
		}
		policy := Policy(Duo{Streaming{p.Sink, p.Recent}, gates[i], PerKVHead})
		switch {
		case !strings.Contains(gates[i], "0"):
			policy = Full{}
		case !strings.Contains(gates[i], "1"):
			policy = Streaming{p.Sink, p.Recent}
		case len(gates[i]) != y.KVHeads:
			policy = Duo{Streaming{p.Sink, p.Recent}, gates[i], PerQueryHead}
		}
		all[y.Index] = policy
		i++
	}
	return all, nil
}

// rowsOf are the rows of the full layers, if the pattern is one for such a model.
func (p *Pattern) rowsOf(layers []PatternLayer) ([][]float64, error) {
	var full []PatternLayer
	var rows [][]float64
	for i, y := range layers {
		if y.Full {
			full = append(full, y)
			if i < len(p.Values) {
				rows = append(rows, p.Values[i])
			}
		}
	}
	switch len(p.Values) {
	case len(layers):
	case len(full):
		rows = p.Values
	default:
		return nil, &format.Error{Path: p.Path, Got: fmt.Sprintf("%d rows", len(p.Values)), Want: fmt.Sprintf("%d, one for each layer, or %d, one for each full layer", len(layers), len(full)),
			Fix: "the pattern is one of another model: simulate heads finds those of this one"}
	}
	for _, y := range full {
		if n := len(p.Values[0]); n != y.KVHeads && n != y.Heads {
			return nil, &format.Error{Path: p.Path, Got: fmt.Sprintf("%d columns", n), Want: fmt.Sprintf("%d, one for each KV head, or %d, one for each query head", y.KVHeads, y.Heads),
				Fix: "the pattern is one of another model: simulate heads finds those of this one"}
		}
	}
	return rows, nil
}

// gates are the classes, row by row. A head streams if its rank, counted from the least value, lies below the share of the ranks.
func (p *Pattern) gates(rows [][]float64, share float64) []string {
	type cell struct{ row, col int }
	var order []cell
	out := make([][]byte, len(rows))
	for r, row := range rows {
		out[r] = bytes.Repeat([]byte("1"), len(row))
		for c := range row {
			order = append(order, cell{r, c})
		}
	}
	slices.Reverse(order)
	slices.SortStableFunc(order, func(a, b cell) int { return cmp.Compare(rows[a.row][a.col], rows[b.row][b.col]) })
	limit := share * float64(len(order)-1)
	if share >= 1 {
		limit = float64(len(order))
	}
	gates := make([]string, len(rows))
	for rank, c := range order {
		if float64(rank) < limit {
			out[c.row][c.col] = '0'
		}
	}
	for r := range out {
		gates[r] = string(out[r])
	}
	return gates
}

// Order lists the heads of gates as a graph of two passes wants them: those that see everything first, each class in its old order.
// Rows of the query projection and columns of the output projection follow it; nothing else of Gemma does, having no biases (ATT-07).
func Order(gates string) []int {
	var all []int
	for _, class := range "10" {
		for i, g := range gates {
			if g == class {
				all = append(all, i)
			}
		}
	}
	return all
}
