// Package devicelog answers: what do the measurements that people already have say, in the columns of a calibration?
//
// It reads, and tells apart by content:
//
//	CSV                    the measurements file of package anesim
//	pasted console text    [Load], [Profile], [Profile-2chunk], [Profile-1chunk], [ANE/CPU], [Prefill], [ComputePlan] lines,
//	                       with dates, emoji or Xcode's prefixes before the bracket; other lines are skipped and counted
//	device report          JSON of the device script: [DeviceReport]
//	anemll-bench           JSON with "system_info" and "results" (field names of its repository, October 2025)
//	Instruments table      CSV or tab-separated rows with a Duration and a name
//
// A log does not say everything: which phone, which context, which encoding. [Context] fills that in; without it rows would
// be guesses.
//
// [Profile] lines are cumulative means since the last reset: the last line of a run is the one to fit, and the first is
// cold. Means that cannot belong to one run, times that look like seconds, and rates that contradict times are errors by
// line, or doubts when they may be read anyway.
//
// Start at [Read].
package devicelog
