// Package run executes a plan in Go: chunk by chunk, through exactly the ports that Core ML would see.
//
// A [Function] is one way to call the chunks: decode continues a sequence by a token, prefill starts one with a prompt, verify
// tries drafts. [Executor.Call] is one chunk as a pure function from its input tensors to its output tensors: caches come in and
// go out whole, the sliding cache is right-aligned and shifted, the full cache is written through the one-hot mask, a donor's keys
// and values leave as kv13/kv14 (spec forward.md §4.1–4.10). [Session] is the host around it: embeddings, masks, rotary rows,
// cache buffers. The layers themselves are gemma4's, so a cut changes where values travel and never what they are: results
// equal the whole model's in every numerics mode.
//
//	function   past of a window          past of other caches       new rows
//	decode     S rows, shifted by one    C rows, one-hot write      in the caches that go out
//	prefill    none                      none                       outputs K0, V0, …
//	verify     S old rows, new behind    C rows, written by column  outputs new_K_sliding, …; caches stay
//
// A verify call whose rows keep their whole windows needs the K−1 positions that a shift by K would drop; so its masks and
// hand-offs of windows have S+K rows. [ShiftedWindow] names the traced chunks' form without them.
//
// Where the first positions stay in front of a window ([chunking.Bank]), new rows go into the window in any case, and into the
// sinks where the mask for writing says so.
//
// Port tensors hold float32 numbers representable in the mode's storage type. A masked write may turn −0 into +0, so equality
// means ==.
//
// Start at [NewSession].
package run
