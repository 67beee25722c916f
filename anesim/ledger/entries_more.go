package ledger

import "anelab/anesim"

// Drafters are priced by the share of a decode step that a draft takes; the shares are guesses of their sizes, stated here.
const (
	smallDrafter = 0.15 // a head or a shallow network
	largeDrafter = 0.5  // another language model
	noDrafter    = 0.01 // a look into a table
)

// Speculation. What a drafter gets right is not ours to predict, so entries say how much it must.
func draftEntries() []Entry {
	verify := []string{"T1-to-3-iphone", "T1-to-3-mac", "T1-to-8-mlstate4-mac", "T1-to-8-mlstate3-mac"}
	return []Entry{
		{ID: "eagle-3", Name: "EAGLE-3", Claim: "3 to 6 times on GPUs", Verdict: Priced, Ground: "verify call and acceptance profile", Effects: verify,
			Advice: "the verify call is nearly free; acceptance on the device decides, and was far below that offline", forecast: draft(2, 1, smallDrafter, anesim.CommitAccepted)},
		{ID: "medusa", Name: "Medusa heads", Claim: "2 to 3 times", Verdict: Priced, Ground: "verify call and acceptance profile (tree)", Effects: verify,
			Advice: "a tree of two needs a verify graph as wide as all its paths", forecast: draft(3, 2, smallDrafter, anesim.CommitAccepted)},
		{ID: "mtp", Name: "multi-token prediction", Claim: "1.8 times", Verdict: Priced, Ground: "verify call and acceptance profile", Effects: verify,
			Advice: "as EAGLE-3: a head that drafts from the hidden state of the last chunk", forecast: draft(2, 1, smallDrafter, anesim.CommitAccepted)},
		{ID: "redrafter", Name: "ReDrafter", Claim: "2.3 times on Apple GPUs", Verdict: Priced, Ground: "verify call and acceptance profile", Effects: verify,
			Advice: "a recurrent head: priced as a small drafter", forecast: draft(3, 1, smallDrafter, anesim.CommitAccepted)},
		{ID: "prompt-lookup", Name: "prompt lookup", Claim: "2 times where the answer repeats the prompt", Verdict: Reference, Ground: "verify call and acceptance profile", Effects: verify,
			Advice: "drafts are free, so it is even almost at once", forecast: draft(3, 1, noDrafter, anesim.CommitAccepted)},
		{ID: "suffix-decoding", Name: "suffix decoding", Claim: "as prompt lookup, with a tree of past outputs", Verdict: Reference, Ground: "verify call and acceptance profile", Effects: verify,
			Advice: "as prompt lookup", forecast: draft(4, 1, noDrafter, anesim.CommitAccepted)},
		{ID: "layerskip", Name: "LayerSkip (draft with the first layers)", Claim: "1.8 times", Verdict: Rule, Ground: "probe: 0 of 60 early exits matched", Effects: nil,
			Advice: "not on a model that was not trained for it", forecast: draft(2, 1, largeDrafter, anesim.CommitAccepted)},
		{ID: "cross-vocabulary", Name: "cross-vocabulary drafter", Claim: "any small model can draft", Verdict: Priced, Ground: "verify call and acceptance profile", Effects: verify,
			Advice: "a whole model as drafter eats its own gain", forecast: draft(3, 1, largeDrafter, anesim.CommitAccepted)},
		{ID: "kv-share-batching", Name: "Q-batching of layers that share KV", Claim: "one read of a donor's cache for several queries", Verdict: Unmeasured, Ground: "attention_shared",
			Advice: "layers depend on each other: only queries of one verify call can share a read", forecast: fixed(0, 0.5e-3, "nothing at one query")},
		{ID: "write-through-verify", Name: "verify that writes through to the caches", Claim: "no commit step", Verdict: Rule, Ground: "KV contamination: rejected rows stay in the sliding caches",
			Effects: []string{"T1-to-3-mac"}, Advice: "do not: accepted tokens have to be replayed", forecast: draft(2, 1, smallDrafter, anesim.CommitAll)},
	}
}

// Rewrites of the graph: measured, and mostly without effect.
func graphEntries() []Entry {
	return []Entry{
		{ID: "native-softmax", Name: "native softmax", Claim: "one op instead of four", Verdict: Rule, Ground: "measured at −1.2 %", Effects: []string{"graph-native-softmax-qwen"},
			Advice: "no gain", forecast: slower(0.012, 0.012, "51 to 50.4 tok/s on another model")},
		{ID: "head-16way", Name: "LM head in 16 pieces", Claim: "faster, on a vocabulary of 128k", Verdict: Rule, Ground: "measured at −4.6 % on 262k (open case SIM-04)", Effects: nil,
			Advice: "leave the split to the compiler", forecast: slower(0.046, 0.046, "measured −4.6 % where another project claims a gain")},
		{ID: "argmax-on-cpu", Name: "argmax tail on the CPU", Claim: "move it into the graph and save the logits", Verdict: Rule, Ground: "limit argmax-on-cpu", Effects: []string{"graph-argmax-in-graph-qwen"},
			Advice: "eight ops, 0.3 % of the cost: leave them; in-graph argmax added 2 ms on another model"},
		{ID: "conv-to-linear", Name: "1×1 convolutions instead of linears", Claim: "3 times", Verdict: Rule, Ground: "measured at 1 % either way", Effects: []string{"graph-conv2d-to-linear-mac", "graph-conv2d-to-linear-mac-c1", "graph-conv2d-to-linear-5layer-m3"},
			Advice: "no difference at one token", forecast: slower(0, 0.01, "23.48 against 23.24 ms")},
		{ID: "enumerated-shapes", Name: "EnumeratedShapes", Claim: "one program for several lengths", Verdict: Rule, Ground: "limit flexible-shapes-iphone: ranges leave the engine, up to 128 enumerated shapes do not", Effects: nil,
			Advice: "better fixed shapes; never a RangeDim"},
		{ID: "ane-gpu-pipelining", Name: "D1b: chunks on ANE and GPU at once", Claim: "1.5 to 2.0 times, 36 to 43 tok/s", Verdict: Rule, Ground: "chunks depend on each other; the GPU took 16.6 ms where the engine took 7.5",
			Effects: []string{"place-chunk3-gpu-mac", "place-chunk3-gpu-mac-c3", "place-chunk3-gpu-async-mac", "overlap-ane-ane-mac", "overlap-ane-gpu-mac"},
			Advice:  "do not: a token's chunks cannot overlap, and 24 % of the rate went", forecast: slower(0.30, 0.05, "33.0 to 25.4 tok/s")},
		{ID: "tiled-mlp", Name: "PR #17: tiled MLP, 5-D products, exp2 softmax", Claim: "faster matrix products", Verdict: Rule, Ground: "limit tiled-mlp-graph-iphone", Effects: []string{"graph-pr17-8k-iphone"},
			Advice: "do not: a fifth of the ops fell off the engine, 5.5 times slower"},
	}
}

// The time to the first token, for a prompt of 400 tokens.
func promptEntries() []Entry {
	const n = 400
	decode, batch := anesim.Prompt{Tokens: n}, anesim.Prompt{Tokens: n, Rows: 512}
	return []Entry{
		{ID: "prefill-512", Name: "batched prefill of 512 rows", Claim: "150 tok/s and more", Verdict: Priced, Ground: "batch rate by class of device",
			Effects: []string{"prefill-c1-N64-to-128-mac", "prefill-c1-N128-to-256-mac", "prefill-c1-N256-to-512-mac", "prefill-c1-mask-N64-mac", "prefill-c1-mask-N128-mac", "prefill-c1-mask-N256-mac", "prefill-c1-mask-N512-mac",
				"prefill-real10-to-348-iphone", "prefill-real10-to-348-iphone-chunks", "prefill-16programs-iphone", "warm-first-after-prefill-iphone", "warm-first-after-prefill-e4b"},
			Advice: "an order of magnitude over decode; one set of programs only, sixteen made it twice as slow", forecast: promptChange(decode, batch)},
		{ID: "prefill-1024", Name: "batched prefill of 1024 rows", Claim: "longer prompts in one batch", Verdict: Priced, Ground: "batch rate by class of device",
			Effects: []string{"warm-first-after-prefill-e4b"}, Advice: "pays only for prompts beyond 512 tokens where padded rows cost time",
			forecast: promptChange(batch, anesim.Prompt{Tokens: n, Rows: 1024})},
		{ID: "prefix-cache", Name: "prefix cache", Claim: "no prefill for what was seen before", Verdict: Priced, Ground: "copy of the caches, decode of the rest",
			Advice: "pays when what follows the prefix is short: the rest goes token by token", forecast: promptChange(batch, anesim.Prompt{Tokens: n, Rows: 512, Cached: n - 8})},
		{ID: "gpu-prefill", Name: "prefill on the GPU", Claim: "6 times on a phone", Verdict: Rule, Ground: "two observations, 9.7 times slower and 3.6 times faster", Effects: []string{"prefill-gpu-mac"},
			Advice: "measure it: the published figures contradict each other", forecast: promptChange(batch, anesim.Prompt{Tokens: n, Rows: 512, Engine: anesim.EngineGPU})},
	}
}

// What the host does around the calls.
func hostEntries() []Entry {
	return []Entry{
		{ID: "mask-preallocation", Name: "mask preallocation", Claim: "faster", Verdict: Rule, Ground: "measured 1.4 ms slower", Effects: []string{"host-mask-prealloc"},
			Advice: "do not reuse masks while a call may read them", forecast: fixed(1.4e-3, 1.4e-3, "31.8 to 33.2 ms, blamed on a race")},
		{ID: "iosurface-buffers", Name: "IOSurface buffers for KV", Claim: "no copy on the way in", Verdict: Rule, Ground: "measured 1.7 ms faster", Effects: []string{"host-iosurface-kv"},
			Advice: "do it", forecast: fixed(-1.7e-3, 1.2e-3, "28 to 29.4 tok/s")},
		{ID: "embedding-prefetch", Name: "embedding cache and prefetch", Claim: "3 to 10 %", Verdict: Rule, Ground: "measured at 0.1 %", Effects: []string{"host-lru-prefetch-mac"},
			Advice: "no gain", forecast: fixed(0, 0.1e-3, "33.17 to 33.21 tok/s")},
		{ID: "prewarming", Name: "prewarming steps", Claim: "the first token at full speed", Verdict: Rule, Ground: "cold steps take 41 ms instead of 30", Effects: []string{"warm-cold-to-steady-mac-A"},
			Advice: "four dummy steps after load, as the runtime does"},
	}
}
