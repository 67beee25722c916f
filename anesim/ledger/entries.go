package ledger

import (
	"slices"

	"anelab/anesim"
)

// Entries lists every technique, by what it changes: cuts, caches, attention, weights, drafts, graphs, prompts, host.
func Entries() []Entry {
	return slices.Concat(cutEntries(), cacheEntries(), attentionEntries(), weightEntries(), draftEntries(), graphEntries(), promptEntries(), hostEntries())
}

// Cuts: the one subject that the cost model was made for.
func cutEntries() []Entry {
	return []Entry{
		{ID: "chunks-3", Name: "three chunks instead of four (merged 2+3)", Claim: "41 tok/s; −2.3 ms for a dispatch saved", Verdict: Priced, Ground: "dispatch, handoff_call, handoff_first",
			Effects:  []string{"layout-4to3-iphone-tps", "layout-4to3-iphone-merged", "layout-4to3-mac-tps", "layout-4to3-mac-merged", "layout-4to3-mac-topo", "layout-4to3-mlstate-mac", "layout-4to3-qwen-mlkv"},
			Advice:   "do it: 1.3 to 2 ms, most of it hand-off between neighbours and not dispatch",
			forecast: change("@4way", "@3way")},
		{ID: "chunks-2", Name: "two chunks", Claim: "about 45 tok/s; −2.3 ms for each dispatch saved", Verdict: Priced, Ground: "dispatch, handoff_call",
			Effects:  []string{"layout-4to2-iphone-sum", "layout-4to2-iphone-tps", "layout-4to2-iphone-m1", "layout-4to2-iphone-m2"},
			Advice:   "worth little over three chunks: the one session on a phone gained 0.3 to 0.7 ms over four",
			forecast: change("@4way", "@2way")},
		{ID: "chunks-1", Name: "one chunk", Claim: "about 52 tok/s", Verdict: Rule, Ground: "whole-program; limit whole-model-explicit-iphone",
			Effects:  []string{"layout-4to1-iphone", "layout-3to1-mlstate-mac", "compile-1chunk-mlstate-mac", "compile-1chunk-mlstate-T8-iphone", "place-monolith-1.94GB-mac"},
			Advice:   "do not: a phone does not load it, and on a Mac it lost 3.6 ms to three chunks",
			forecast: wholeProgram},
		{ID: "lite-2chunk", Name: "lite two-chunk modules", Claim: "fewer calls with smaller programs", Verdict: Priced, Ground: "dispatch, handoff_call; modules without a builder (spec forward.md §4.6)",
			Advice: "the same cut as two chunks: the same price", forecast: change("@4way", "@2way")},
	}
}

// wholeProgram is the sum law corrected by its one counterexample.
func wholeProgram(b *Bench) (Forecast, error) {
	p, err := b.plan("@1way")
	if err != nil {
		return None, err
	}
	three, err := b.plan("@3way")
	if err != nil {
		return None, err
	}
	w := anesim.Workload{KV: anesim.KVState}
	is, was := anesim.WithEmpirical(anesim.Predict(p, b.Device, w), p, b.Device, w), anesim.Predict(three, b.Device, w)
	return Forecast{Seconds: is.TimeS - was.TimeS, Range: anesim.Range{Lo: is.TimeRange.Lo - was.TimeS, Hi: is.TimeRange.Hi - was.TimeS}, Of: "token",
		Text: "@3way → @1way with the rule of the one session that tried"}, nil
}

// Where caches live. Most of these are decided by what compiles, not by what is fast.
func cacheEntries() []Entry {
	return []Entry{
		{ID: "stateless", Name: "stateless programs that return new rows", Claim: "no cache traffic out of the call", Verdict: Unmeasured, Ground: "empirical rule stateless",
			Advice: "nobody timed one; the copy it saves is at most half a millisecond when it is asynchronous already", forecast: kv(anesim.KVStateless)},
		{ID: "mlstate", Name: "caches in MLState", Claim: "1.3 to 2.0 times", Verdict: Rule, Ground: "empirical rule state",
			Effects: []string{"state-explicit-to-mlstate4-mac", "state-explicit-to-mlstate3-mac", "state-explicit-to-mlstate4-iphone", "state-explicit-to-mlkv-qwen0.8b", "state-recurrent-to-mlstate-qwen3vl", "compile-mf-T8-iphone-nz1323", "compile-mf-T8-iphone-nz1324",
				"compile-mf-T8-iphone-nz1325", "compile-mf-T8-iphone-nz1326", "compile-T288-single-iphone", "compile-3states-mac", "compile-2states-lfm2-mac", "compile-updatestate-2026-04", "compile-e4b-mlstate-iphone", "compile-T32-scatter-qwen3vl-iphone"},
			Advice: "no faster on Gemma; it closes the door to several functions per package on a phone", forecast: kv(anesim.KVState)},
		{ID: "mlstate-32-heads", Name: "MLState padded to 32 heads", Claim: "makes coreml_update_state compile", Verdict: Rule, Ground: "limit state-old-tools: padding does not help",
			Effects: []string{"compile-updatestate-2026-04"}, Advice: "pointless: newer tools compile it without"},
		{ID: "double-buffered-kv", Name: "double-buffered KV by output backings", Claim: "−1.9 ms of copy", Verdict: Rule, Ground: "limit backed-input-iphone",
			Effects: []string{"host-double-buffer-kv-e4b"}, Advice: "do not: locked pixel buffers made a step sixteen times slower; copy asynchronously instead"},
	}
}

// Attention policies at 8K, where they matter; what they do to tokens is for the reference to show. A policy that the
// planner does not know is bounded by the window of as many rows.
func attentionEntries() []Entry {
	const full, windowed = "@4way context=8192", "@4way context=8192 attn=sliding:"
	return []Entry{
		{ID: "wfa", Name: "windowed full attention (WFA)", Claim: "14.9 to about 31 tok/s at 8K with windows of 2048", Verdict: Reference, Ground: "attention_own, attention_shared; policy sliding:W",
			Effects: []string{"ctx-wfa-8k", "ctx-2k-to-8k-iphone-sum", "ctx-2k-to-8k-iphone-c1", "ctx-2k-to-8k-iphone-c2", "ctx-2k-to-8k-iphone-c3", "ctx-2k-to-8k-iphone-c4", "ctx-512-to-2k-mlstate-iphone",
				"ctx-512-to-2k-mlstate-mac", "ctx-512-to-2k-mlstate-mac-c1", "ctx-1k-to-2k-bonsai", "window-1k-vs-rot1k-bonsai"},
			Advice: "the one change that gives 8K the speed of 2K; what it forgets, the reference shows", forecast: change(full, windowed+"2048")},
		{ID: "flash-decoding", Name: "Flash decoding", Claim: "faster attention at long contexts", Verdict: Unmeasured, Ground: "attention terms; one engine runs tasks one after another (spec ane.md A1)",
			Advice: "splits work over engines that the ANE does not have", forecast: fixed(0, 1e-3, "the same reads in the same order")},
		{ID: "duoattention", Name: "DuoAttention (retrieval and streaming heads)", Claim: "2.6 times less KV at equal quality", Verdict: Unmeasured, Ground: "attention terms, as a bound",
			Advice: "E2B has one KV head per layer: heads of a layer cannot be split, layers can", forecast: atMost(full, windowed+"1024")},
		{ID: "streamingllm", Name: "StreamingLLM (sinks and a window)", Claim: "unbounded length at constant cost", Verdict: Unmeasured, Ground: "attention terms, as a bound",
			Advice: "priced as a window of the same number of rows", forecast: change(full, windowed+"1028")},
		{ID: "block-topk", Name: "TriForce and Quest: block top-k", Claim: "2 to 7 times at long contexts on GPUs", Verdict: Unmeasured, Ground: "attention terms, as a bound; limit runtime-gather",
			Advice: "picking blocks needs a gather with runtime indices, which leaves the engine", forecast: atMost(full, windowed+"1024")},
		{ID: "minicache", Name: "MiniCache (caches merged across layers)", Claim: "5 times less KV", Verdict: Unmeasured, Ground: "handoff terms",
			Advice: "E2B shares 20 of 35 layers' caches by training; what is left to merge are three full layers"},
		{ID: "palu", Name: "PALU low-rank KV", Claim: "half the KV", Verdict: Unmeasured, Ground: "attention terms, as a bound",
			Advice: "adds a product per cached row on the slow path for activations", forecast: atMost(full, windowed+"4096")},
		{ID: "int8-kv", Name: "KIVI and INT8 KV", Claim: "chunk 2 from 20.7 to 13 ms", Verdict: Rule, Ground: "measured at 0: caches are widened before they are read",
			Effects: []string{"weights-int8-kv-iphone"}, Advice: "no gain where it was tried", forecast: fixed(0, 1e-3, "measured at 0 %")},
	}
}

// Encodings. Bytes are priced; that some engines decode every palette at one rate (spec ane.md §0.3) is in the range.
func weightEntries() []Entry {
	const base = "int4g32"
	return []Entry{
		{ID: "int4-g32", Name: "INT4 palettes in groups of 32", Claim: "a quarter of the bytes of fp16", Verdict: Priced, Ground: "weight_stream",
			Effects: []string{"weights-int8pt-to-int4g32-qwen3vl", "weights-int4g32-to-int4lin-qwen3vl", "weights-int4g32-to-int4g16-qwen3vl", "weights-int4g32-to-int4g8-qwen3vl", "weights-int8-to-int4-bonsai", "weights-int8pt-to-a8m4-qwen3vl", "compile-perblock-lut"},
			Advice:  "the default; smaller groups cost nothing, linear INT4 costs 40 %", forecast: reweighed("f16", base)},
		{ID: "int8", Name: "INT8 palettes", Claim: "no loss at half the bytes of fp16", Verdict: Priced, Ground: "weight_stream, with the doubt of a decode limit",
			Effects: []string{"weights-fp16-to-int8pt-qwen3vl", "weights-int8pt-to-int4g32-qwen3vl"}, Advice: "slower than INT4 by its bytes or not at all: some engines decode every palette at one rate",
			forecast: reweighed(base, "int8g32")},
		{ID: "w8a8", Name: "W8A8 and W4A8", Claim: "+30 to 60 %", Verdict: Rule, Ground: "limits quantised-activations-iphone and -mac",
			Effects: []string{"weights-w4a16-to-w4a8-mac", "weights-w8a8-model-mac", "weights-w8a8-model-iphone"}, Advice: "does not compile on a phone, gains nothing on a Mac", forecast: fixed(0, 0.5e-3, "one token is bound by bytes, not by products")},
		{ID: "w2-w3", Name: "W2 and W3", Claim: "half the bytes again", Verdict: Priced, Ground: "weight_stream; limit few-bits",
			Advice: "gibberish when made after training; wait for weights trained for it", forecast: reweighed(base, "int2g32")},
		{ID: "int8-lut", Name: "INT8 entries in palettes", Claim: "faster", Verdict: Rule, Ground: "measured 3.5 % slower", Effects: []string{"weights-int8-lut-entries-m3"},
			Advice: "do not", forecast: slower(0.035, 0.03, "of the chunk that was timed")},
		{ID: "sparse-palettes", Name: "2:4 sparse and palettised", Claim: "faster and smaller", Verdict: Rule, Ground: "measured 11 % slower and 2.2 times larger", Effects: []string{"weights-sparse24-mac"},
			Advice: "do not", forecast: slower(0.11, 0.05, "of the chunk that was timed")},
		{ID: "vocabulary-pruning", Name: "vocabulary pruning", Claim: "a smaller head", Verdict: Priced, Ground: "weight_stream of the LM head",
			Advice: "each half of the vocabulary is 100 MB of stream", forecast: prunedHead},
	}
}

// slower is a measured ratio applied to the whole step.
func slower(share, half float64, text string) func(*Bench) (Forecast, error) {
	return func(b *Bench) (Forecast, error) {
		p, err := b.plan("@4way")
		if err != nil {
			return None, err
		}
		t := anesim.Predict(p, b.Device, anesim.Workload{}).TimeS
		return Forecast{Seconds: share * t, Range: anesim.Range{Lo: (share - half) * t, Hi: (share + half) * t}, Of: "token", Text: text}, nil
	}
}

// prunedHead halves the vocabulary.
func prunedHead(b *Bench) (Forecast, error) {
	p, err := b.plan("@4way")
	if err != nil {
		return None, err
	}
	k := b.Device.Constants[anesim.WeightStream]
	for _, op := range p.Chunks[len(p.Chunks)-1].Ops {
		if op.Kind == "lm_head" {
			half := float64(op.WeightBytes) / 2
			return Forecast{Seconds: -half * k.Value, Range: anesim.Range{Lo: -half * (k.Value + 2*k.SD), Hi: -half * max(0, k.Value-2*k.SD)}, Of: "token",
				Text: "half of the vocabulary"}, nil
		}
	}
	return None, nil
}
