// Package view answers: how is a result shown?
//
// A result is a struct that a verb fills and that knows all its forms. Every result has a page for people, as text or
// Markdown, and a JSON document; some have records (one line each, for streams), CSV or the benchmark format of benchstat.
//
//	result ─┬─ Page      80 columns, three significant digits, scaled units, footnotes
//	        ├─ JSON      format_version, SI units in the keys, everything
//	        ├─ CSV       SI units in the header
//	        └─ Benchmark for benchstat, so that predictions and measurements meet there
//
// Machine forms carry unrounded SI values. Documents say which command, model, device and tool made them. Adding a key is a
// minor change of the format, renaming or removing one a major change; schemas are in docs/schema.
//
// Start at [Write].
package view
