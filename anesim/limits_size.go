package anesim

import "fmt"

// Sizes and counts of the rules below.
const (
	refusedLayers = 35     // the one explicit-I/O program of the whole model that was tried on a phone
	triedLayers   = 21     // the longest program that was seen to run on a phone
	fallbackBytes = 1.94e9 // was seen on the GPU instead
	doubtfulBytes = 1.4e9  // where the rule of thumb begins
	phoneBytes    = 0.95e9 // what tools cut phone programs to
	programBytes  = 2.0e9
	maxRowsANE    = 65536 // any dimension
	maxContextANE = 65472 // a dimension less one block
)

// sizeLimits are what chunks of plans can meet: lengths, bytes and dimensions. Those of spec ane.md A5, which are not in
// limits.csv, stand at the end.
func sizeLimits() []LimitRecord {
	return append(layerLimits(), append(byteLimits(), dimensionLimits()...)...)
}

// Lengths. The often quoted ceiling of fifteen layers is a refuted claim, see [limitFacts].
func layerLimits() []LimitRecord {
	wholeModel := func(s *Subject) bool { return s.Layers >= refusedLayers && s.Head && s.StateTypes == 0 }
	return []LimitRecord{
		{
			ID: "whole-model-explicit-iphone", Sort: SortPredicate, Class: IPhone, Verdict: VerdictNo, meets: wholeModel,
			text: func(s *Subject) string {
				return fmt.Sprintf("%d layers and the head in one program do not load: \"Must re-compile the E5 bundle\"", s.Layers)
			},
			Fix:      "cut it in two: L0-14 | L15-34+head was seen to run",
			Evidence: observed("layers per function", "35 layers + head, explicit", "iPhone"),
		},
		{
			// The measured program kept its KV in a state; a plan with explicit I/O is told what is nearest to it.
			ID: "whole-model-mac", Sort: SortPredicate, Class: Mac, Verdict: VerdictNote,
			meets: func(s *Subject) bool { return s.Layers >= refusedLayers && s.Head },
			text: func(s *Subject) string {
				return fmt.Sprintf("%d layers and the head in one program compile with their KV in a state, slower than three chunks; with explicit I/O nobody tried", s.Layers)
			},
			Evidence: observed("layers per function", "35 layers + head, unified MLState, INT4", "Mac"),
		},
		{
			ID: "layers-beyond-tried-iphone", Sort: SortPredicate, Class: IPhone, Verdict: VerdictWarning,
			meets: func(s *Subject) bool { return s.Layers > triedLayers && s.Layers < refusedLayers },
			text: func(s *Subject) string {
				return fmt.Sprintf("%d layers in one program: the longest that was seen to run has %d, and %d did not load", s.Layers, triedLayers, refusedLayers)
			},
			Fix:      "keep chunks at 21 layers or fewer",
			Evidence: observed("layers per function", "21 layers", "iPhone"),
		},
	}
}

// Sizes of one package. The two marks of the GPU fallback come from one observation at 1.94 GB and a rule of thumb at
// 1.4.
func byteLimits() []LimitRecord {
	rule := observed("package size", "one mlpackage above", "iPhone")
	return []LimitRecord{
		{
			ID: "package-on-gpu", Sort: SortPredicate, Verdict: VerdictNo,
			meets: func(s *Subject) bool { return s.WeightBytes >= fallbackBytes },
			text: func(s *Subject) string {
				return fmt.Sprintf("a package of %.2f GB ran on the GPU without a word", s.WeightBytes/1e9)
			},
			Fix:      "more chunks or fewer bits",
			Evidence: rule,
		},
		{
			ID: "package-near-gpu", Sort: SortPredicate, Verdict: VerdictWarning,
			meets: func(s *Subject) bool { return s.WeightBytes >= doubtfulBytes && s.WeightBytes < fallbackBytes },
			text: func(s *Subject) string {
				return fmt.Sprintf("a package of %.2f GB may run on the GPU without a word", s.WeightBytes/1e9)
			},
			Fix:      "more chunks or fewer bits; read the compute plan on the device",
			Evidence: rule,
		},
		{
			ID: "package-size-iphone", Sort: SortPredicate, Class: IPhone, Verdict: VerdictWarning,
			meets: func(s *Subject) bool { return s.WeightBytes >= phoneBytes && s.WeightBytes < doubtfulBytes },
			text: func(s *Subject) string {
				return fmt.Sprintf("%.0f MB of weights in one program: others cut at 950 MB for phones", s.WeightBytes/1e6)
			},
			Fix:      "more chunks",
			Evidence: observed("package size", "chunk cap 950 MB", "iOS"),
		},
		{
			ID: "program-2gb", Sort: SortPredicate, Class: Mac, Verdict: VerdictNo,
			meets: func(s *Subject) bool { return s.WeightBytes >= programBytes },
			text: func(s *Subject) string {
				return fmt.Sprintf("%.2f GB of weights in one program; about 2 GB is the most it can hold", s.WeightBytes/1e9)
			},
			Fix:      "more chunks or fewer bits",
			Evidence: observed("package size", "about 2 GB baked weights", "Mac"),
		},
	}
}

// Formats and dimensions. The bounds of spec ane.md A5 hold from the A16 generation on; older parts stop at 16384.
func dimensionLimits() []LimitRecord {
	return []LimitRecord{
		{
			ID: "few-bits", Sort: SortPredicate, Verdict: VerdictWarning,
			meets: func(s *Subject) bool { return s.Bits == 2 || s.Bits == 3 },
			text: func(s *Subject) string {
				return fmt.Sprintf("weights of %d bits made after training wrote gibberish", s.Bits)
			},
			Fix:      "4 bits in groups of 32, or weights trained for fewer bits",
			Evidence: observed("weight format", "2- and 3-bit", "Mac"),
		},
		{
			ID: "argmax-on-cpu", Sort: SortPredicate, Verdict: VerdictNote,
			meets: func(s *Subject) bool { return s.Head },
			text: func(*Subject) string {
				return "the end of the head (soft-cap, argmax, gather) runs on the CPU: 8 ops, 0.3 % of the estimated cost"
			},
			Evidence: observed("ops on CPU", "argmax tail", "iPhone"),
		},
		{
			ID: "context-dimension", Sort: SortPredicate, Verdict: VerdictNo,
			meets: func(s *Subject) bool { return s.LongestRow > maxContextANE },
			text: func(s *Subject) string {
				return fmt.Sprintf("an input of %d rows: a dimension may have %d, less one block", s.LongestRow, maxRowsANE)
			},
			Fix: fmt.Sprintf("a context of at most %d, or windows on the full layers", maxContextANE),
			Evidence: Evidenced{"dimension", "context entry usable limit 65,472 rows (65,536 minus block)", "A16 generation and later",
				"larger dimensions are rejected", "reported", "spec ane.md A5 [S5]"},
		},
		{
			ID: "head-dimension", Sort: SortPredicate, Verdict: VerdictNote,
			meets: func(s *Subject) bool { return s.HeadRows > maxRowsANE },
			text: func(s *Subject) string {
				return fmt.Sprintf("the head has %d rows and a dimension may have %d: it runs in %d pieces or more", s.HeadRows, maxRowsANE, (s.HeadRows+maxRowsANE-1)/maxRowsANE)
			},
			Evidence: Evidenced{"dimension", "LM head over the limit: 262144 rows in 8-16 pieces typically", "A16 generation and later",
				"split by the builder or the compiler", "reported", "spec ane.md A5 [S22], [S23]"},
		},
	}
}
