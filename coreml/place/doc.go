// Package place answers: which op of a program runs where, and why does the Neural Engine not take the others?
//
// Core ML gives every op to a backend by a shortest path over the ops in program order: each backend that takes an op has an
// estimate of its time, and the path pays for entering the engine, for every change of backend, and for leaving results in the
// engine's memory (spec ane.md A5). The same path is computed here, from estimates that a compiled text records, or from
// estimates and refusals made of the program alone:
//
//	mil.Function ─ Recorded ─► steps with the compiler's estimates ─┐
//	             ─ Predict: Refuse + rates ─► steps ────────────────┴─ Cheapest ─► a backend for every op
//
// Being taken is not being placed (SIM-01): an op that the engine could run stays on the CPU if going there costs more than is
// saved. [Placement] says for every op which of the two it is, by which rule, and how many milliseconds are missing. Programs
// whose weights exceed what the engine's compiler takes run on the GPU, all of them (SIM-05).
//
// Rules carry their source and apply to a generation of chips; [Limits] holds the numbers. Estimates are those of macOS 27 on
// M4, from which the compiler derives the same for A19-class targets. They are not times: nothing else may be read off them.
//
// A [chunking.Plan] is judged by the ops that its chunks will have ([PredictPlan]), and made from packages ([ReadPlan]), so that
// models that others have converted can be priced.
//
// Times are in seconds. Start at [Predict].
package place
