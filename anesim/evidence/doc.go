// Package evidence answers: what was observed on real devices, under which conditions, and who says so?
//
// Two tables come with the program. Both were measured by the public project CoreML-LLM; the source column of each row names
// the document.
//
//	effects.csv   one change, before and after, with what its authors had predicted     → [Effect]
//	limits.csv    what the tool chain refuses, places elsewhere or slows down           → [Limit]
//
// They are observations, not rules: package anesim says which of the limits can be asked of a plan, and its ledger says
// which of the effects a cost model explains.
//
// Start at [Effects] and [Limits].
package evidence
