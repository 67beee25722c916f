package anesim

import (
	"fmt"

	"anelab/chunking"
)

// Load says what of a bundle a process holds at once.
type Load struct {
	Functions   int // loaded per chunk: 1 = decode alone; each further one (a prefill or verify function) has its own copy of the weights
	PrefillRows int // rows of a batched prefill set loaded beside the decode chunks, 0 without one
	Tables      Tables
	PrefixBytes int64 // of cached prefixes held in memory
}

// Tables says how the embedding tables are read.
type Tables uint8

// Mapped tables cost memory only where rows are touched; resident ones were read into memory.
const (
	TablesMapped Tables = iota
	TablesResident
)

// MemoryItem is one thing that takes memory. Lo and Hi are honest bounds, not a confidence interval: almost nothing of this
// has been measured on these models.
type MemoryItem struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	Lo     int64  `json:"bytes_lo"`
	Hi     int64  `json:"bytes_hi"`
	Wired  bool   `json:"wired"` // cannot be paged out while loaded
	Source string `json:"source"`
	Copies int    `json:"copies"`
}

// Memory is what a load plan takes.
type Memory struct {
	Items         []MemoryItem `json:"items"`
	ResidentBytes int64        `json:"resident_bytes"`
	ResidentLo    int64        `json:"resident_bytes_lo"`
	ResidentHi    int64        `json:"resident_bytes_hi"`
	WiredBytes    int64        `json:"wired_bytes"`
	DownloadBytes int64        `json:"download_bytes"` // files: weights once per chunk, tables once
	DiskTables    int64        `json:"table_bytes"`
}

// copyOverhead: loading a file of 0.69 GB wired 1.05 GB, loading its second function another 1.04 GB (spec ane.md §0.9). So a
// copy takes up to half as much again as the file, and functions share nothing in memory.
const copyOverhead = 1.53

// Sizes of the tables beside the programs (spec forward.md §6.1): int8 rows with an fp16 scale each, fp16 RoPE rows.
const (
	scaleBytes = 2
)

// MemoryOf adds up what a plan takes when it is loaded so.
func MemoryOf(p *chunking.Plan, l Load) Memory {
	var m Memory
	totals := p.Totals()
	functions := max(1, l.Functions)
	if l.PrefillRows > 0 {
		functions++ // a prefill set is one more program over the same weights
	}
	m.add(weightItem(p, functions))
	m.add(MemoryItem{Name: "KV caches", Bytes: totals.CacheInBytes, Lo: totals.CacheInBytes, Hi: totals.CacheInBytes, Wired: true, Copies: 1,
		Source: "spec forward.md §8.3: persistent IOSurface buffers of the host"})
	m.add(callItem(p))
	if l.PrefillRows > 0 {
		m.add(prefillItem(p, l.PrefillRows))
	}
	m.add(tableItem(p.Model, l.Tables))
	if l.PrefixBytes > 0 {
		m.add(MemoryItem{Name: "prefix cache", Bytes: l.PrefixBytes, Lo: l.PrefixBytes, Hi: l.PrefixBytes, Copies: 1, Source: "as asked for"})
	}
	m.DiskTables = tableBytes(p.Model)
	m.DownloadBytes = totals.WeightBytes + m.DiskTables
	return m
}

// Lower and upper bounds add up as they are.
func (m *Memory) add(i MemoryItem) {
	m.Items = append(m.Items, i)
	m.ResidentBytes += i.Bytes
	m.ResidentLo += i.Lo
	m.ResidentHi += i.Hi
	if i.Wired {
		m.WiredBytes += i.Bytes
	}
}

// widened: a bundle of 8-bit weights of 754 MB took the 1.6 GB that its fp16 original of 1.5 GB took, so eight bits may be loaded as
// sixteen. Nobody saw that of fewer bits: E2B would not fit into a phone.
const (
	widenedBits     = 8
	widenedOverhead = 1.6 / 1.5
)

// loadedBytes is the most that the weights of a chunk were seen to take for each copy.
func loadedBytes(c *chunking.Chunk) int64 {
	most := copyOverhead * float64(c.Totals.WeightBytes)
	if c.Weights.Bits == widenedBits {
		const fp16 = 2
		rest := c.Totals.WeightBytes - c.Totals.LinearBytes
		most = max(most, widenedOverhead*float64(fp16*c.Totals.LinearParams+rest))
	}
	return int64(most)
}

// The middle of the bounds is printed: nothing says where between them a model lies.
func weightItem(p *chunking.Plan, functions int) MemoryItem {
	var total, hi int64
	for _, c := range p.Chunks {
		total += int64(functions) * c.Totals.WeightBytes
		hi += int64(functions) * loadedBytes(c)
	}
	return MemoryItem{Name: fmt.Sprintf("weights of %d function(s)", functions), Bytes: (total + hi) / 2, Lo: total, Hi: hi, Wired: true, Copies: functions,
		Source: "spec ane.md §0.9: a 0.69 GB file wires 1.05 GB per loaded function, and functions share nothing; 754 MB of 8-bit weights took 1.6 GB"}
}

// callItem is what passes between host and programs in a call: inputs and outputs other than the persistent caches. Calls
// run one after the other, so the largest pair of buffers is the least, all of them the most.
func callItem(p *chunking.Plan) MemoryItem {
	var largest, all int64
	for _, c := range p.Chunks {
		b := c.Totals.InputBytes + c.Totals.OutputBytes - c.Totals.CacheInBytes
		largest, all = max(largest, b), all+b
	}
	return MemoryItem{Name: "call buffers", Bytes: (largest + all) / 2, Lo: largest, Hi: all, Wired: true, Copies: 1,
		Source: "ports of the plan; whether outputs are reused is not known"}
}

// prefillItem is the buffers of a batch: hidden states, per-layer inputs, masks, and keys and values of every own layer.
func prefillItem(p *chunking.Plan, rows int) MemoryItem {
	cfg := &p.Model.Config
	n := int64(rows)
	bytes := 2 * (n*int64(cfg.HiddenSize)*2 + n*int64(cfg.HiddenSizePerLayer)*int64(cfg.NumHiddenLayers)*2 + n*n)
	for _, l := range p.Model.Layers {
		if l.OwnsKV() {
			bytes += 2 * 2 * n * int64(l.KVHeads) * int64(l.HeadDim)
		}
	}
	return MemoryItem{Name: fmt.Sprintf("prefill buffers, %d rows", rows), Bytes: bytes, Lo: bytes / 2, Hi: 2 * bytes, Wired: true, Copies: 1,
		Source: "ports of spec forward.md §4.9; activations inside a program are not known"}
}

// PLE tables are the largest file of a bundle, 2.3 GB, and a token touches one row of each.
func tableItem(m *chunking.Model, t Tables) MemoryItem {
	bytes := tableBytes(m)
	if t == TablesResident {
		return MemoryItem{Name: "embedding tables", Bytes: bytes, Lo: bytes, Hi: bytes, Copies: 1, Source: "spec forward.md §6.1"}
	}
	// A row is touched per token and the pages are clean: the system may drop them at any time.
	return MemoryItem{Name: "embedding tables, mapped", Bytes: 0, Lo: 0, Hi: bytes, Copies: 1, Source: "spec forward.md §6.1; clean pages, dropped under pressure"}
}

// tableBytes are the int8 embedding tables with their scales.
func tableBytes(m *chunking.Model) int64 {
	cfg := &m.Config
	rows := int64(cfg.VocabSize)
	bytes := rows * (int64(cfg.HiddenSize) + scaleBytes)
	if cfg.HiddenSizePerLayer > 0 {
		bytes += rows * (int64(cfg.HiddenSizePerLayer)*int64(cfg.NumHiddenLayers) + scaleBytes)
	}
	return bytes
}
