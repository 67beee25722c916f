package parity

import (
	"context"
	"iter"

	"anelab/gemma4"
)

// Backend is an implementation of the forward pass, or a recording of one.
type Backend interface {
	// Name says who is speaking, in reports.
	Name() string
	// Run computes a case from a fresh state and yields its taps: call by call, in each call in the order of Points with the
	// layers in ascending order. It may leave points out. A tap's data is valid until the next one is asked for. After an
	// error the sequence ends.
	Run(ctx context.Context, c Case) iter.Seq2[Tap, error]
}

// Locator is implemented by backends whose layers live in parts that a person would look for, such as chunks.
type Locator interface {
	// Where names the part that computes a layer; layer −1 stands for the points outside the layers.
	Where(layer int) string
}

// OpLocator is implemented by backends that are graphs.
type OpLocator interface {
	// Op names the op that yields a point of a layer, "" if none does; layer −1 stands for the points outside the layers.
	Op(point gemma4.Point, layer int) string
}

// Case is what to run: a prompt, then tokens that are fed one at a time whatever the logits say, so that two backends stay
// comparable behind a near tie.
type Case struct {
	Name   string
	Prompt []int
	Batch  int   // prompt tokens per call; 0 = all in one call
	Follow []int // fed after the prompt, one call each
}

// Calls yields the positions [lo, hi) of every call of the case.
func (c Case) Calls() iter.Seq2[int, int] {
	return func(yield func(lo, hi int) bool) {
		n := len(c.Prompt)
		batch := c.Batch
		if batch <= 0 {
			batch = n
		}
		for lo := 0; lo < n; lo += batch {
			if !yield(lo, min(lo+batch, n)) {
				return
			}
		}
		for lo := n; lo < n+len(c.Follow); lo++ {
			if !yield(lo, lo+1) {
				return
			}
		}
	}
}

// Tokens are the tokens of positions [lo, hi).
func (c Case) Tokens(lo, hi int) []int {
	if n := len(c.Prompt); lo >= n {
		return c.Follow[lo-n : hi-n]
	}
	return c.Prompt[lo:hi]
}

// Context is the number of positions the case needs.
func (c Case) Context() int { return len(c.Prompt) + len(c.Follow) }
