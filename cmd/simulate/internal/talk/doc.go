// Package talk answers: what does a loaded model say after these ids?
//
//	Request ─ prompt ids ─► Sequence (whole, chunk by chunk, or Core ML programs) ─ logits ─► sampler ─ id ─► text, stop texts ─► Token, Token, …
//
// An [Engine] is a model with what belongs to it: vocabulary, conversation format, and who computes, a [Speaker]. It is safe for concurrent use;
// every request gets a sequence of its own. A request that does not fit the context is refused before anything is computed: positions are
// never shifted.
//
// Start at [Engine.Run].
package talk
