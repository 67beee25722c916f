package converted

import (
	"fmt"

	"anelab/coreml"
	"anelab/coreml/mil"
	"anelab/internal/format"
)

// What runtimes were seen to refuse although converters write it, and loaders and placement reports do not object.
const (
	stateMultiple = 32 // of the last axis of a state (apple/coremltools#2631)
	mostStates    = 2  // of one program (CoreML-LLM, MLSTATE_PATTERN)
)

// DeviceWarnings lists what is valid and computes on a CPU, but was seen to fail on the Neural Engine at run time.
func DeviceWarnings(p *coreml.Model) []error {
	var all []error
	for _, f := range p.Functions {
		states := f.States()
		if len(states) > mostStates {
			all = append(all, &format.Error{Path: p.Path, Field: f.Name, Got: fmt.Sprintf("%d states", len(states)), Want: fmt.Sprintf("at most %d for the Neural Engine", mostStates),
				Fix: "put keys and values of one kind into one state"})
		}
		for _, s := range states {
			t, ok := s.Type.AsTensor()
			if n := len(t.Shape); ok && n > 0 && t.Shape[n-1]%stateMultiple != 0 {
				all = append(all, &format.Error{Path: p.Path, Field: f.Name + "/" + s.Name, Got: "a state of shape " + mil.ShapeString(t.Shape),
					Want: fmt.Sprintf("a last axis that is a multiple of %d for the Neural Engine", stateMultiple), Fix: "pad its rows"})
			}
		}
	}
	return all
}
