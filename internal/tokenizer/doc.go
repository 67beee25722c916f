// Package tokenizer answers: which token ids does this text have, and which text do these ids have?
//
// A [Vocabulary] is what a file says: pieces by id, what kind each is, merges by rank, settings. It comes from a tokenizer.json or
// from the metadata of a GGUF file. A [Tokenizer] is a vocabulary made fast.
//
//	text ─ sections ─ segments ─ symbols ─ merges ─► ids ─ bytes ─ whole characters ─► text
//
// Gemma's algorithm is byte-pair encoding over characters: a space is written ▁ (U+2581), a character without a piece becomes the
// byte tokens <0x00>…<0xFF> of its UTF-8, and the pair of neighbours with the lowest merge rank is joined, leftmost first, until none
// is left. Text is not normalised. Nothing is cut at word boundaries by rule: a [Tokenizer] cuts where no piece of the vocabulary holds
// the two characters around the cut side by side, because there no merge can cross. So cuts are exact for any vocabulary, runs of
// newlines stay whole, and equal words are merged once.
//
// Two sorts of pieces are not made by merging. Control pieces (<bos>, <|turn>) are produced from text only by [Tokenizer.EncodeMarked]:
// what a user types cannot open a turn or end a generation. User-defined pieces are taken from any text, longest first.
//
// Decoding inverts encoding for every valid UTF-8 text that has no ▁ of its own; a ▁ comes back as a space, as in the reference.
//
// Start at [Open] for a file, at [New] for a vocabulary made by hand.
package tokenizer
