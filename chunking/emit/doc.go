// Package emit answers: which Core ML programs is a layout, and which files does a phone need beside them?
//
//	chunking.Plan + gemma4.Source + Options
//	└─ Emit ─► a Chunk per cut: mlpackage.Package{program, description}
//	             ├─ decode_q1     one token, caches through ports (main, if it is the only function)
//	             ├─ prefill_bN    a prompt in one call
//	             └─ verify_qK     drafts on trial
//
// Ports are those of the plan and of package run, which executes the same functions in Go; in mode ane both compute the same
// numbers, bit for bit (spec forward.md §5.3). Weights are shared by the functions of a chunk, stay where the checkpoint maps them,
// and are converted or palettized while a package is written.
//
// Graphs are made for the Neural Engine: products are 1×1 convolutions on [1, C, 1, T]; a norm is a LayerNorm of [x, −x]; the
// query heads of a KV head are rows of one product; palettes are shared by groups of rows. Masks come from the host; what a policy
// hides beyond them is a constant made of [attention.Policy.Visible] (band.go). With [StateCaches] keys and values are states.
//
// Names of ops tell where they come from: layers_3_self_attn_q_proj is the product with the checkpoint's
// layers.3.self_attn.q_proj.weight, counted from the model's first layer in every chunk.
//
// Start at [Emit].
package emit
