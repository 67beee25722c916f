// Package bundle answers: what tokens does a folder of chunks give, as an app would load it?
//
// CoreML-LLM ships a model as a folder (spec forward.md §6):
//
//	model_config.json                                 sizes, context, end tokens
//	embed_tokens_q8.bin, embed_tokens_scales.bin      int8 [V, D] and fp16 [V]
//	embed_tokens_per_layer_{q8,scales}.bin            int8 [V, L·P] and fp16 [V]: one scale for all layers of a token
//	cos_sliding.npy, sin_sliding.npy, cos_full.npy, … fp16 [positions, head width]
//	chunk1.mlpackage or chunk1.mlmodelc, …            the programs
//
// Open checks that these belong together: tables as large as the config says, chunks and tables of one context. Chain runs the
// programs token by token, or functions of several tokens in one call, and does the host's part: rows of the tables, masks, caches and
// states that go round. It takes its rows from a [Host], which a bundle's [Tables] are, so that other sources of embeddings can drive the same programs.
//
// Conventions: positions are absolute and 0-based; rows are fp16 numbers in float32; a token is what the last chunk chose, greedily.
// Everything is little-endian. Faults are *format.Error.
//
// Start at [Open].
package bundle
