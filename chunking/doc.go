// Package chunking answers: how are the layers cut into programs, what crosses each cut, and what does every op move?
//
// A [Layout] is what a person wants, written as text:
//
//	L0-7 | L8-24 | L25-34+head
//
// [Layout.Plan] turns it into a [Plan]: for every chunk the exact ports (name, shape, bytes) and ops (weight bytes, MACs,
// KV bytes). The chunked executor, the cost model and the emitter read the plan and nothing else, so what is priced is what
// is run (spec design.md D4).
//
// A [Chunk] depends only on its layers, its settings and the context, never on its neighbours, so chunks are immutable, shared
// and cached; a plan is a list of pointers, and a million plans take a second. What a chunk must hand on follows from the
// model alone: a donor's keys and values leave the chunk if any later layer reads them.
//
//	text ─ Parse ─► Layout ─ Planner.Plan ─► Plan ─► chunks: ports, ops, totals
//	YAML ─ layoutfile.Read ─┘      └─ Violations: what is wrong with it
//
// Layer ranges are half-open [Lo, Hi) in code and inclusive in text: L0-7 is Lo 0, Hi 8. Chunks are counted from 0 in code
// and from 1 in messages. Bytes are those of a Core ML call: fp16 but for token ids.
//
// A [Bank] is how rows behind a layer are kept, which decides the ports they travel through: layers with sinks and a window beside
// layers that keep everything have smaller ports of their own.
//
// Start at [Parse], then [Layout.Plan].
package chunking
