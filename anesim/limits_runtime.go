package anesim

import "fmt"

// residentTrouble programs at once slowed a phone down.
const residentTrouble = 16

// runtimeLimits are about what a host does with loaded programs.
func runtimeLimits() []LimitRecord {
	return []LimitRecord{
		predicate("two-queues-one-engine", "", VerdictNote,
			func(s *Subject) bool { return s.Queues >= 2 },
			observed("concurrency", "two programs on two queues", "Mac")),
		predicate("resident-programs-iphone", IPhone, VerdictWarning,
			func(s *Subject) bool { return s.ResidentPrograms >= residentTrouble },
			observed("resident programs", fmt.Sprintf("%d prefill programs", residentTrouble), "iPhone")),
		predicate("backed-input-iphone", IPhone, VerdictNo,
			func(s *Subject) bool { return s.BackedInput },
			observed("output backing", "IOSurface MLMultiArray", "iOS")),
		predicate("infrequent-reshapes-iphone", IPhone, VerdictNo,
			func(s *Subject) bool { return s.InfrequentReshapes },
			observed("config option", "reshapeFrequency", "iPhone")),
	}
}

// limitFacts are rows that nothing follows from for other programs, and the one claim that was refuted.
func limitFacts() []LimitRecord {
	const layers, types, stateful, thermal = "layers per function", "state types per chunk", "stateful multifunction", "thermal"
	refuted := fact("fifteen-layer-ceiling", "do not cut for it", observed(layers, `"about 15 layers"`, "iPhone"))
	refuted.Sort = SortRefuted
	return []LimitRecord{
		refuted,
		fact("fifteen-and-twenty-layers-iphone", "both halves of @2way run on a phone", observed(layers, "15 layers (L0-14)", "iPhone")),
		fact("seventeen-layers-iphone", "the middle chunk of @3way runs whole on the engine", observed(layers, "17 layers", "iPhone")),
		fact("qwen-monolith-ios", "another model: what ran out of space is not known", observed(layers, "24-layer Qwen3.5", "iOS")),
		fact("file-size-guideline", "package-size-iphone and program-2gb are the rules that are checked", observed("package size", "about 1 GB per file", "iOS")),
		fact("largest-chunks-in-use", "heads of 527 and 753 MB are shipped", observed("package size", "largest chunk in use", "iPhone")),
		fact("one-state", "one state per chunk is safe", observed(types, "1 StateType", "iPhone")),
		fact("two-states", "sliding and full caches may be two states", observed(types, "2 StateTypes (sliding", "iPhone")),
		fact("state-functions-mac", "the same packages run on a Mac", observed(stateful, "same packages", "Mac")),
		fact("state-functions-28-layers", "contradicts the refusal of Gemma's: the cause is not T > 1 alone", observed(stateful, "28 layers", "iPhone")),
		fact("state-single-function", "prefill of 288 rows in a program of its own compiles", observed("stateful single function", "T=288", "iPhone")),
		fact("head-tail-mac", "9 of 841 ops of the head are off the engine", observed("ops on CPU", "head chunk 9", "Mac")),
		fact("dispatch-floor", "no warm call is shorter: the prior of the dispatch term", observed("dispatch floor", "small single-expert", "Mac")),
		fact("ane-beside-gpu", "two engines overlap, yet the GPU is slower than what it frees", observed("concurrency", "one program ANE, one GPU", "Mac")),
		fact("no-fused-attention", "attention is composed of products and a softmax", observed("tool", "fused SDPA", "coremltools")),
		fact("load-time-mac", "a chunk less saves a sixth of the load time", observed("load time", "four 2K decode chunks", "Mac")),
		fact("load-time-e4b", "prefill programs of E4B load in the background", observed("load time", "E4B prefill", "iPhone")),
		fact("thermal-sustained", "7 to 10 % after throttling: outside every range given", observed(thermal, "Qwen3.5-0.8B", "iPhone")),
		fact("thermal-excursion", "a slow stretch passes", observed(thermal, "E2B verify", "iPhone")),
		fact("thermal-serious", "30 to 50 % slower: outside every range given", observed(thermal, "4-6 back-to-back", "iPhone")),
	}
}
