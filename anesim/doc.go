// Package anesim answers: what does a plan cost on a device, why, and how sure are we?
//
// It reads a [chunking.Plan] and a [Device], nothing else: no weights, no kernels. The cost of one decode step is a sum of
// named terms, each one constant of the device times one quantity of the plan ([Term] lists them):
//
//	time of a chunk = dispatch                                     once per call
//	                + weight_stream    · weight bytes
//	                + attention_own    · positions of full layers that own their KV (read, rewritten, attended)
//	                + attention_shared · positions of full layers that read a donor's (attended)
//	                + handoff_bytes    · bytes of kv13/kv14 that come in
//	                + handoff_call     once if any come in
//	                + handoff_first    once if they come straight from the chunk that wrote them
//	                + copyback_bytes   · cache bytes, when the runtime copies them inside the call
//	                + ple_projection   once in the chunk that computes the per-layer inputs
//	time of a token = chunks + host_step + host_positions · context
//
// The sum is linear in its constants on purpose: [Calibrate] solves for all of them at once, without a starting point, and
// the same algebra gives the uncertainty of any other plan. Constants cannot be negative. What the measurements of a
// device cannot tell apart stays where the prior of the device file puts it, and the interval is as wide as the prior is.
//
// # Conventions
//
// SI inside: seconds, bytes, positions. A percentage of error is 100·(predicted/measured − 1). Residuals are relative
// everywhere, because timers scatter by about 1 % of what they time (data README §4).
//
// An experiment is one configuration in one session; all its rows share an unknown factor (temperature, build) that is
// estimated with a prior and thrown away. Accuracy is always quoted with whole experiments left out.
//
// # Beyond one decode step
//
//	limits and placement   [Check], [CheckSubject], [LimitRecords]: every row of limits.csv as a predicate, a fact or a refuted claim
//	states, one program    [EmpiricalFactors]: what the sum does not explain, by rule and with a wide range
//	verify and drafts      [VerifySeconds], [PredictSpeculation]: break-even acceptance, contaminated caches
//	prompts                [PredictPrefill]: batches on either engine, prefix caches, the rest through decode
//	memory, energy         [MemoryOf], [PredictEnergy]: sums of published figures, with bounds
//	other devices, models  [TransferTo]: at most five timed calls and the constants of a relative
//	in time                [TimelineOf]: one token as a trace
//
// How far the numbers go is in the [Calibration]: left-out steps beside an oracle, a control with shuffled times, what each
// term earns, and which constants the data pin alone, together, or not at all ([Identify]).
//
// Start at [Predict] for a plan, at [Calibrate] for constants; device files are read by package devices.
package anesim
