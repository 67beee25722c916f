// Package run executes a plan in Go: chunk by chunk, through exactly the ports that Core ML would see.
//
// [Executor.Call] is one chunk as a pure function from its input tensors to its output tensors: caches come in and go out
// whole, the sliding cache is right-aligned and shifted, the full cache is written through the one-hot mask, a donor's keys and
// values leave as kv13/kv14 (spec forward.md §4.1–4.5). [Session] is the host around it: embeddings, masks, rotary rows,
// cache buffers. The layers themselves are gemma4's, so a cut changes where values travel and never what they are: results
// equal the whole model's in every numerics mode.
//
// Port tensors hold float32 numbers representable in the mode's storage type. A masked write may turn −0 into +0, so equality
// means ==.
//
// Start at [NewSession].
package run
