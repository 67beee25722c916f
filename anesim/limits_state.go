package anesim

// stateLimits are about caches that live in the program (MLState) and about packages with several functions. Plans have
// explicit I/O and one function, so only subjects made by hand or read from packages meet them.
func stateLimits() []LimitRecord {
	const stateful, types, op = "stateful multifunction", "state types per chunk", "state op"
	return []LimitRecord{
		predicate("whole-model-state-functions-iphone", IPhone, VerdictNo,
			func(s *Subject) bool {
				return s.Layers >= refusedLayers && s.StateTypes > 0 && s.QueryTokens >= 8 && s.Functions > 1
			},
			observed("layers per function", "35 layers + head, unified MLState, T=8", "iPhone")),
		predicate("conv-state-beside-kv", Mac, VerdictNo,
			func(s *Subject) bool { return s.StateTypes == 2 && s.ConvState },
			observed(types, "2 StateTypes (KV + conv)", "macOS")),
		predicate("three-states", "", VerdictNo,
			func(s *Subject) bool { return s.StateTypes >= 3 },
			observed(types, "3 or more", "Mac")),
		predicate("state-functions-iphone", IPhone, VerdictNo,
			func(s *Subject) bool { return s.StateTypes > 0 && s.Functions > 1 && s.QueryTokens > 1 },
			observed(stateful, "dual or single state", "iPhone")),
		predicate("state-prefill-1.4gb-iphone", IPhone, VerdictNo,
			func(s *Subject) bool { return s.WeightBytes >= doubtfulBytes && s.StateTypes > 0 && s.QueryTokens > 1 },
			observed("package size", "1.4 GB fp16 decode package", "iPhone")),
		predicate("state-old-tools", "", VerdictNo,
			func(s *Subject) bool { return s.StateTypes > 0 && s.OldStateTools },
			observed(op, "coreml_update_state before", "Mac")),
		predicate("state-shift-write", Mac, VerdictNo,
			func(s *Subject) bool { return s.StateTypes > 0 && s.ShiftWrite && s.TiedEmbedding },
			observed(op, "shift-style", "Mac")),
		predicate("state-alias-output-iphone", IPhone, VerdictNo,
			func(s *Subject) bool { return s.StateTypes > 0 && s.StateOutputs },
			observed("state alias output", "E4B chunk 2", "iPhone")),
		predicate("scatter-write-iphone", IPhone, VerdictNo,
			func(s *Subject) bool { return s.ScatterWrite && s.QueryTokens >= 32 },
			observed("KV write by scatter", "matmul-scatter", "iPhone")),
		predicate("palette-after-merge", "", VerdictNo,
			func(s *Subject) bool { return s.Functions > 1 && s.LatePalette },
			observed("tool", "palettisation or linear", "coremltools")),
	}
}
