// Package checkpoint answers: where are the weights of this Gemma 4 model, and are they the ones its config describes?
//
//	directory ─┬─ config.json ───────────────────────────► Config
//	           ├─ model.safetensors, or its shards ┐
//	           └─ pytorch_model.bin ───────────────┴─ names ─ Check ─► Tensor("layers.3.self_attn.q_proj.weight")
//	formula:e2b-10L ───────────────────────────────────────┘
//
// Containers (subpackages safetensors, torchpickle, formula) know bytes and names; this package knows what the names mean:
// which prefix the text model has, what belongs to other modalities, what a KV-shared layer may carry along, and the shape
// of every tensor the config needs (spec forward.md §3). A checkpoint that opens without error has them all and no others.
// Opening reads headers, not weights.
//
// Start at [Open].
package checkpoint
