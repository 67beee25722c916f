// Package talk answers: what does a loaded model say after these ids?
//
//	Request ─ prompt ids ─► sequence (whole, or chunk by chunk) ─ logits ─► sampler ─ id ─► text, stop texts ─► Token, Token, …
//
// An [Engine] is a model with what belongs to it: vocabulary, conversation format, plan of chunks, context. It is safe for concurrent use;
// every request gets a sequence of its own. A request that does not fit the context is refused before anything is computed: positions are
// never shifted.
//
// Start at [Engine.Run].
package talk
