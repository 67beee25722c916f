// Package layoutfile answers: how does a layout look as a file?
//
// YAML and JSON carry the same fields as layout text, and the three convert into each other without loss:
//
//	context: 2048            # C; 2048 when absent
//	tokens: 1                # query tokens per call
//	kv: explicit
//	weights: int4g32         # of chunks that do not say otherwise
//	attn:                    # policies that differ from the model's own; without layer: all full layers
//	  - {layer: 9, policy: "sliding:1024"}
//	chunks:                  # or preset: "@3way"
//	  - {layers: 0-7, weights: f16}
//	  - {layers: 8-24}
//	  - {layers: 25-34, head: true}
//
// layers is a range as in text (inclusive), one number, or a list of consecutive numbers. The files come from outside:
// unknown fields, wrong types and anything that the model cannot do are refused with line, column and the lines around.
// JSON is read as the subset of YAML that it is, so its faults have the same places.
//
// Start at [Read].
package layoutfile
