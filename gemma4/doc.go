// Package gemma4 is the model: its configuration, its weights, one forward pass, and generation.
//
// [Config] mirrors config.json and nothing else. [Config.Layers] resolves every per-layer fact once (kind, head width, KV
// heads, FFN width, RoPE, window, whose keys and values a layer reads), and everything downstream loops over that list:
// forward pass, chunker, cost model.
//
// The forward pass exists once, written against [arith.Arithmetic]; the numerics mode decides where values are rounded.
//
//	checkpoint ─ Source ─► Load ─► Model ─ NewState ─► State ─ Prefill / Step ─► logits
//
// Alphabet of shape comments, used everywhere in the project:
//
//	T tokens   D hidden   H query heads   K kv heads   d head dim   F ffn   P per-layer width
//	L layers   V vocab    W window        C context
//
// Conventions with two readings: window W is the query itself and the W−1 positions before it; positions are absolute and
// 0-based; layer ranges in code are half-open [Lo, Hi).
//
// Source of the formulas: forward.md (spec) and, where it says so, Hugging Face transformers 5.24 as run for the goldens.
//
// Start at [Load].
package gemma4
