package metrics

// rates are the results of a prediction.
var rates = []Entry{
	{Name: "tok_s", Aliases: []string{"tok_per_s", "rate"}, Unit: "tokens per second", Seen: "plan, sweep, diff",
		Short: "decode rate: 1 / time per token",
		Text: "One token through every chunk in turn, and the host's work, at the compiled context; prefill and speculation are not in it. " +
			"The rate is that of a phone that is neither cold nor throttled."},
	{Name: "time", Aliases: []string{"time_s", "per_token"}, Unit: "s", Seen: "plan, sweep, diff",
		Short: "predicted time of a chunk call, or of a whole token",
		Text:  "A sum of terms, each a constant of the device times a quantity of the plan; simulate plan --format json lists them all."},
	{Name: "range", Aliases: []string{"time_range90_s", "tok_per_s_range90", "90% range", "interval"}, Unit: "as the figure", Seen: "plan, sweep, diff",
		Short: "90 % interval of the prediction for one session on one device",
		Text: "It holds the errors of the constants with their correlations, the factor that a session (temperature, build) puts on all its times, " +
			"the scatter of single timers, and a share for what the form of the model leaves open where nothing was measured. " +
			"Its width is scaled so that left-out sessions fall inside nine times in ten."},
	{Name: "basis", Aliases: []string{"worst_miss", "sessions"}, Seen: "plan, sweep, devices",
		Short: "what a range rests on",
		Text: "The number of measured sessions that the constants were fitted on, and the worst miss: the largest error of a session's sum of chunks when that session was left out of the fit. " +
			"\"Priors only\" means that nobody has measured the device."},
	{Name: "bound", Aliases: []string{"bound_by", "bound_share"}, Unit: "share of the time", Seen: "plan, sweep",
		Short: "the resource that most of a chunk's time goes to, and its share",
		Text: "One of weights, attention, hand-off, copy-back, dispatch, ple, host. Making another resource cheaper " +
			"cannot win more than the rest of the time."},
	{Name: "measured", Aliases: []string{"measured_s"}, Unit: "s", Seen: "plan",
		Short: "median of what timers said about this very chunk at this context on this device",
		Text:  "×N is the number of timed rows behind it. A dash: nobody ran it. A footnote says when the measured build copied its caches elsewhere than the one that is priced."},
	{Name: "rank", Aliases: []string{"untried", "refused"}, Seen: "sweep", Short: "place of a layout among all that the device is known to run, at one context",
		Text: "Layouts that simulate check refuses are counted, not ranked; neither are those it warns of (untried), unless --untried asks for them. " +
			"Of layouts with equal times the first in order of cuts comes first. Ranks closer together than their ranges mean nothing."},
}

// resources are what time goes to.
var resources = []Entry{
	{Name: "weights", Aliases: []string{"weight_bytes"}, Unit: "bytes", Seen: "plan, diff",
		Short: "weights of a chunk as stored, read once per token",
		Text:  "Linears in their encoding, norm gains and scalars in fp16. The head is the tied embedding; the tables that the host looks up are not in it."},
	{Name: "kv_read", Aliases: []string{"kv_read_bytes"}, Unit: "bytes", Seen: "plan",
		Short: "keys and values that a chunk's attention reads per token",
		Text:  "fp16, at the width of a head. A static graph reads all compiled positions: the context on full layers, the window on sliding ones."},
	{Name: "attention", Seen: "plan, diff", Short: "time of full-attention layers that grows with the context",
		Text: "The terms attention_own and attention_shared. Sliding layers cost the same at every context; their time is in the other terms."},
	{Name: "handoff", Aliases: []string{"hand-off"}, Seen: "plan, diff", Short: "time to take in keys and values that another chunk owns",
		Text: "Layers that share KV read the last owner of their kind (13 and 14 in E2B). When a cut lies between them, those caches cross it in every step: terms handoff_bytes, handoff_call, handoff_first."},
	{Name: "copyback", Aliases: []string{"copy-back"}, Seen: "plan, diff", Short: "when the host copies the caches that a call has returned",
		Text: "async: behind the calls, as the current runtime does. sync: inside the timed calls of the chunks that own caches, as builds before 2026-04-24 did. none: not at all. " +
			"Measurements of one kind do not tell times of another."},
	{Name: "ple", Seen: "plan, diff", Short: "time to compute the per-layer inputs of all layers",
		Text: "One projection and a norm in the first chunk, on models with per-layer embeddings: the term ple_projection."},
	{Name: "host", Aliases: []string{"host_time_s"}, Unit: "s", Seen: "plan, diff", Short: "time per token outside the chunk calls",
		Text: "The terms host_step and host_positions, fitted on sessions that timed both the whole step and its chunks."},
}

// accuracy is what calibrate prints.
var accuracy = []Entry{
	{Name: "fit", Aliases: []string{"loo", "score"}, Seen: "calibrate", Short: "three ways to hold predictions against rows",
		Text: "fit: the rows that constants were fitted on. loo: each session predicted from all others, the figure to quote. score: rows of another file (--score), predicted with constants that never saw their session."},
	{Name: "chunk_raw", Aliases: []string{"sum_raw", "median_pct", "p90_pct", "max_pct"}, Unit: "%", Seen: "calibrate",
		Short: "absolute relative error of single chunks, or of the chunk sum of a session",
		Text:  "|predicted/measured − 1|. Sums only for sessions that timed all their chunks."},
	{Name: "chunk_scaled", Aliases: []string{"sum_scaled", "scale"}, Unit: "%", Seen: "calibrate",
		Short: "the same after dividing by the session's own median of measured/predicted",
		Text:  "It forgives a warm phone and shows wrong proportions between chunks. Only for sessions with at least three timed chunks."},
	{Name: "coverage90", Aliases: []string{"coverage90_pct", "inside90"}, Unit: "%", Seen: "calibrate",
		Short: "share of left-out rows inside their 90 % range",
		Text:  "Near 90 is right. Far below, ranges are too thin; far above, they say less than they could."},
	{Name: "baselines", Aliases: []string{"ms_per_layer", "bytes_per_bandwidth_plus_floor"}, Seen: "calibrate",
		Short: "two simpler models, fitted and left out in the same way",
		Text:  "Constant time per layer; and weight bytes over a bandwidth plus a time per call. The cost model has to beat both to have earned its terms."},
	{Name: "shuffled", Aliases: []string{"control"}, Unit: "%", Seen: "calibrate", Short: "the left-out error with the times dealt out at random",
		Text: "A model that did no better than this had learnt nothing from which time belongs to which chunk."},
	{Name: "step", Aliases: []string{"steps", "oracle", "apart"}, Unit: "%", Seen: "calibrate", Short: "left-out error of whole decode steps, chunks and host together",
		Text: "Nothing is forgiven: no factor of the session. The oracle knows the median of the same layout, context and device from the other sessions; what it misses is how much sessions differ. " +
			"Steps whose context no other session had are counted apart."},
	{Name: "width", Aliases: []string{"intervals", "mean_half_width_pct", "constant_band_half_width_pct"}, Unit: "%", Seen: "calibrate", Short: "half the width of 90 % ranges, relative to the measured time",
		Text: "Beside it the width that one band for all rows would need to hold as many of them: ranges that are no narrower would have cost their effort for nothing."},
	{Name: "pin", Aliases: []string{"identifiability", "held_by"}, Seen: "calibrate", Short: "whether rows hold a constant, only together with others, or not at all",
		Text: "Data: rows took away most of what its prior left open. Joint: they would if the constants beside it were known. Prior: they say little, and the value is the prior's."},
	{Name: "confidence", Seen: "devices, plan --format json", Short: "how well a constant is known: high, medium or low",
		Text: "By its relative standard deviation: up to 5 %, up to 20 %, more. The source of a constant says how much of it came from rows and how much from its prior."},
}

// agreement is what verify prints.
var agreement = []Entry{
	{Name: "of_peak", Aliases: []string{"peak", "max_rel_to_peak"}, Unit: "ratio", Seen: "verify",
		Short: "largest |difference| of a tensor over its largest magnitude",
		Text: "Tolerances of float32 runs are in this unit: 5e-5, for embeddings and per-layer inputs 1e-6, for prompts of some hundred tokens at real dimensions 2e-4. " +
			"They come from the reference's own error against float64 (at most 1.6e-5) and leave no room for a mistake."},
	{Name: "ulp", Aliases: []string{"max_ulp"}, Unit: "steps", Seen: "verify",
		Short: "distance of two numbers, counted in numbers of the mode's storage type between them",
		Text:  "f32 counts float32 numbers, hf-bf16 bfloat16 numbers, ane float16 numbers."},
	{Name: "cosine", Seen: "verify", Short: "cosine of the angle between two tensors",
		Text: "Blind to magnitude, so never a verdict by itself: a tensor ten times too large has cosine 1."},
	{Name: "argmax", Aliases: []string{"margin", "min_margin", "ties"}, Seen: "verify", Short: "rows in which both sides choose the same index",
		Text: "The lowest index wins among equals. A disagreement whose two values lie less than one step of the storage type apart is a tie and counted apart: rounding alone decides it."},
	{Name: "mode", Aliases: []string{"f32", "hf-bf16", "ane"}, Seen: "verify", Short: "where values are rounded",
		Text: "f32: float32 throughout. hf-bf16: bfloat16 at the steps where Hugging Face's eager code rounds. ane: float16, one rounding per value that a graph for the Neural Engine materialises."},
	{Name: "equal", Aliases: []string{"taps"}, Seen: "verify", Short: "share of elements that are ==",
		Text: "A tap is one named intermediate tensor of one call. Chunked and whole must be equal in all elements of all taps; −0 equals +0, because a masked write may turn one into the other."},
}

// requests are what request and sweep --front print.
var requests = []Entry{
	{Name: "first_token", Aliases: []string{"ttft_s", "ttft_range90_s"}, Unit: "s", Seen: "request, sweep --front, report", Short: "time to the first token of a prompt",
		Text: "Cached tokens are restored, batches go through prefill programs where there are any, the rest through decode steps, and the first decode step behind a batch is slower. It rests on a handful of sessions."},
	{Name: "resident", Aliases: []string{"resident_bytes", "wired_bytes", "wired"}, Unit: "bytes", Seen: "request, sweep --front, report", Short: "memory that a process holds while decoding",
		Text: "Weights once per loaded function, caches, buffers of the calls, embedding tables as far as they are not mapped. Bounds are honest, not a 90 % range: almost nothing of it was measured. Wired memory cannot be paged out."},
	{Name: "download", Aliases: []string{"download_bytes", "table_bytes"}, Unit: "bytes", Seen: "request, sweep --front, report", Short: "files that a user has to fetch: weights once per chunk, tables once",
		Text: "Without compression, and without what a system adds when it compiles programs."},
	{Name: "drafts", Aliases: []string{"tokens_per_cycle", "gain", "break_even", "acceptance"}, Seen: "request, ideas", Short: "decoding of several tokens per cycle, drafted and then verified",
		Text: "A cycle is the drafter, a verify call, and with write-through caches a decode step for every accepted token. Break-even is the acceptance per position at which that is as fast as plain decode."},
	{Name: "energy", Aliases: []string{"j_per_token"}, Unit: "J", Seen: "request", Short: "energy of a token, from published figures of other chips",
		Text: "Nobody measured a phone. Two layouts may be ranked by it; a battery may not be promised."},
	{Name: "forecast", Aliases: []string{"claim", "ground"}, Unit: "s", Seen: "ideas", Short: "what the model expects of a technique; minus is faster",
		Text: "A difference of two plans, or the rule of those who measured it. The claim beside it is its authors'. The ground says which of the two a forecast stands on, or that nobody ran it."},
	{Name: "proof", Aliases: []string{"states", "edges", "bound_s", "checked"}, Seen: "sweep --best", Short: "why no other cut is faster by these prices",
		Text: "The best cut is a shortest path. Every state has a bound, the least time from it to the end; when no edge undercuts the bounds of its ends, no path does, whatever the search did. All edges were held against them."},
}

// layouts is vocabulary.
var layouts = []Entry{
	{Name: "layout", Aliases: []string{"chunk", "chunks"}, Seen: "every verb", Short: "how layers are cut into programs",
		Text: "Chunks between bars, layers inclusive, the head in the last one: L0-7 | L8-24 | L25-34+head. Settings: w=ENCODING per chunk; attn=POLICY, context=C, tokens=T at the end. " +
			"In tables and benchmark names blanks may be left out."},
	{Name: "preset", Seen: "layouts", Short: "a named layout: a rule that fits every model", Text: "See simulate layouts for what it comes to."},
	{Name: "verdict", Aliases: []string{"rule", "finding"}, Seen: "check", Short: "no: it will not run as planned. warning: it may not. note: worth knowing",
		Text: "Every finding names the observation it rests on, measured or reported, with its source. The exit code is 3 when one of them is a no."},
}
