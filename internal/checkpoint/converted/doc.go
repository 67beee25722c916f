// Package converted answers: which weights does a chain of Core ML packages hold, and which choices did its converter make?
//
//	chunk1.mlpackage ┐                ┌ Matrix("layers.7.mlp.up_proj.weight"), palettes as they are stored
//	chunk2.mlpackage ├─ Open ─ Source ┤
//	…                ┘                └ Rules: the ane mode that computes as these graphs do
//
// Converters keep the names of few weights: linears become squeeze_3_palettized, layer scalars const_24. What keeps its name in
// every package seen is the gains of norms (layers_2_post_attention_layernorm_weight, counted within the chunk), so a weight is
// recognised by its own name, or else by the gains around it:
//
//	from a gain             to a gain or op             is
//	input_layernorm         q_norm, k_norm, neither     q_proj, k_proj, v_proj
//	                        post_attention_layernorm    o_proj
//	pre_feedforward_…       gelu, a product             gate_proj, up_proj
//	                        post_feedforward_layernorm  down_proj
//	(the stream)            gelu                        per_layer_input_gate
//	                        post_per_layer_input_norm   per_layer_projection
//	                        per_layer_projection_norm   per_layer_model_projection
//	                        tanh, argmax                lm_head
//
// Packages hold no embedding tables: the host looks tokens up (spec forward.md §4.0). They come from another source; without one, the
// LM head serves for the embeddings, to which it is tied.
//
// Numbers are never changed: a palette stays a palette of the same indices and tables, a folded scale stays folded.
//
// Start at [Open].
package converted
