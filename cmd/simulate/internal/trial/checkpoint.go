package trial

import "anelab/internal/checkpoint"

// Checkpoint is the open checkpoint, for runs that are no trials of a layout.
func (s *Subject) Checkpoint() *checkpoint.Checkpoint { return s.weights }

// Context is the length of the longest sequence.
func (s *Subject) Context() int {
	n := 0
	for _, q := range s.Set.Sequences {
		n = max(n, len(q.Tokens))
	}
	return n
}
