package trial

import "anelab/internal/checkpoint"

// Checkpoint is the open checkpoint, for runs that are no trials of a layout.
func (s *Subject) Checkpoint() *checkpoint.Checkpoint { return s.weights }
