package anesim

import (
	"math"
	"slices"
)

// Device is everything that is known about one device family. It is a value: calibration makes a new one.
type Device struct {
	Name        string   // of its file: "iphone17pro"
	Title       string   // "iPhone 17 Pro"
	Class       Class    // which limits hold
	SoC         string   // as its sources name it
	MeasuredAs  []string // names of this family in the device column of measurements
	Constants   [NumTerms]Constant
	Correlation [chunkTerms][chunkTerms]float64 // of the errors of the chunk constants; symmetric, diagonal 1
	Noise       Noise
	Evidence    Evidence
}

// Class groups devices that share tool chain limits.
type Class string

// Classes that limits are known for.
const (
	IPhone Class = "iphone"
	Mac    Class = "mac"
)

// Constant is one number of a device with what is needed to believe it or not.
type Constant struct {
	Value      float64
	Unit       string
	SD         float64 // standard deviation of the value, in the same unit
	Source     string
	Confidence string // "high", "medium" or "low": see [confidence]
	Group      string // constants of one group were separated by the same few measurements: their errors are tied
	Prior      Prior
}

// Prior is what is believed of a constant before any row of a calibration.
type Prior struct {
	Value, SD float64
	Source    string
}

// Noise is the scatter of measurements that a model of constants cannot explain.
type Noise struct {
	Chunk   float64 // relative standard deviation of one timed chunk
	Session float64 // relative standard deviation of the factor that a session puts on all its rows
	Step    float64 // the same of what whole steps differ by beyond that: builds and prompts, which no timer of a chunk shows
	Source  string
}

// Evidence is what the constants of a device were fitted on.
type Evidence struct {
	Experiments    int
	Rows           int     // timed chunks
	WorstMiss      float64 // largest relative error of a session's chunk sum, that session left out
	IntervalFactor float64 // 90 % interval = this many standard deviations, from left-out experiments
	HostSDSeconds  float64 // scatter of the host time per token
	Models         []ModelEvidence
	Contexts       []ContextEvidence // ascending
	Weights        []string          // encodings
	MaxLayers      int               // of a chunk
	Chunks         []MeasuredChunk
}

// ModelEvidence is a model that was measured.
type ModelEvidence struct {
	Name       string
	Layers     int
	HiddenSize int
}

// ContextEvidence counts what was measured at one context length.
type ContextEvidence struct {
	Context     int
	Experiments int
	Layouts     []string // whose chunks were timed
}

// supported: two layouts are the least that can tell attention from hand-off at one context.
func (c ContextEvidence) supported() bool { return len(c.Layouts) >= 2 }

// confidence grades a fitted value by its relative standard deviation: 5 % is what session noise leaves of a well determined
// constant, 20 % still ranks layouts.
func confidence(value, sd float64) string {
	switch {
	case sd <= 0.05*value:
		return "high"
	case sd <= 0.20*value:
		return "medium"
	}
	return "low"
}

// FromPriors is the device before any measurement: every constant at its prior, independent of the others.
func (d Device) FromPriors() Device {
	for t := range NumTerms {
		c := &d.Constants[t]
		c.Value, c.SD, c.Source = c.Prior.Value, c.Prior.SD, "prior: "+c.Prior.Source
		c.Confidence = confidence(c.Value, c.SD)
	}
	d.Correlation = [chunkTerms][chunkTerms]float64{}
	for t := range chunkTerms {
		d.Correlation[t][t] = 1
	}
	d.Evidence = Evidence{IntervalFactor: normal90, HostSDSeconds: d.Constants[HostStep].Prior.SD}
	return d
}

// normal90 is the half width of a 90 % interval in standard deviations when nothing was left out to measure it.
const normal90 = 1.645

// variance of the time that the constants' errors cause in a sum of chunks with quantities q, in s².
func (d *Device) variance(q *Quantities) float64 {
	var v float64
	for i := range chunkTerms {
		for j := range chunkTerms {
			v += q[i] * d.Constants[i].SD * d.Correlation[i][j] * q[j] * d.Constants[j].SD
		}
	}
	return max(v, 0)
}

// measures reports whether rows of the device named so belong to this family.
func (d *Device) measures(device string) bool { return slices.Contains(d.MeasuredAs, device) }

// nearestSupported is the context closest to c, by ratio, at which several layouts were measured; 0 if there is none.
func (e *Evidence) nearestSupported(c int) int {
	best, distance := 0, math.Inf(1)
	for _, k := range e.Contexts {
		if r := math.Abs(math.Log(float64(c) / float64(k.Context))); k.supported() && r < distance {
			best, distance = k.Context, r
		}
	}
	return best
}

// contextRange is the shortest and longest context measured.
func (e *Evidence) contextRange() (lo, hi int) {
	if len(e.Contexts) == 0 {
		return 0, 0
	}
	return e.Contexts[0].Context, e.Contexts[len(e.Contexts)-1].Context
}
