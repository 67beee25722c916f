package anesim

import (
	"fmt"

	"anelab/chunking"
)

// limit is a rule: on devices of its class, a chunk that meets the condition gets the verdict.
type limit struct {
	id       string
	class    Class // "" = every class
	verdict  Verdict
	meets    func(c *chunking.Chunk, p *chunking.Plan) bool
	text     func(c *chunking.Chunk, p *chunking.Plan) string
	fix      string
	evidence Evidenced
}

// Sizes and counts of the rules below.
const (
	refusedLayers = 35     // the one explicit-I/O program of the whole model that was tried on a phone
	triedLayers   = 21     // the longest program that was seen to run on a phone
	fallbackBytes = 1.94e9 // was seen on the GPU instead
	doubtfulBytes = 1.4e9  // where the rule of thumb begins
	phoneBytes    = 0.95e9 // what tools cut phone programs to
	programBytes  = 2.0e9
	maxRowsANE    = 65536 // any dimension
	maxContextANE = 65472 // a dimension less one block
)

// limits in the order of their evidence in limits.csv; those of spec ane.md A5 at the end.
var limits = []limit{
	{
		id: "whole-model-explicit-iphone", class: IPhone, verdict: VerdictNo,
		meets: wholeModel,
		text: func(c *chunking.Chunk, _ *chunking.Plan) string {
			return fmt.Sprintf("%d layers and the head in one program do not load: \"Must re-compile the E5 bundle\"", c.Totals.Layers)
		},
		fix: "cut it in two: L0-14 | L15-34+head was seen to run",
		evidence: Evidenced{"layers per function", "35 layers + head, explicit KV I/O, INT4, 1.14 GB weights", "iPhone 17 Pro, iOS 26",
			`load fails: "Must re-compile the E5 bundle"`, "measured", "CHUNK_CONSOLIDATION_BENCH.md (AM0287)"},
	},
	{
		id: "whole-model-mac", class: Mac, verdict: VerdictNote,
		meets: wholeModel,
		text: func(c *chunking.Chunk, _ *chunking.Plan) string {
			return fmt.Sprintf("%d layers and the head in one program compile with their KV in a state, slower than three chunks; with explicit I/O nobody tried", c.Totals.Layers)
		},
		evidence: Evidenced{"layers per function", "35 layers + head, unified MLState, INT4, 1091 MB", "Mac Studio, macOS 26",
			"compiles, 91.6 % of ops on ANE, 30.8 tok/s", "measured", "SESSION_2026_04_26_STAGE3_PREFILL_BN.md"},
	},
	{
		id: "layers-beyond-tried-iphone", class: IPhone, verdict: VerdictWarning,
		meets: func(c *chunking.Chunk, _ *chunking.Plan) bool {
			return c.Totals.Layers > triedLayers && c.Totals.Layers < refusedLayers
		},
		text: func(c *chunking.Chunk, _ *chunking.Plan) string {
			return fmt.Sprintf("%d layers in one program: the longest that was seen to run has %d, and %d did not load", c.Totals.Layers, triedLayers, refusedLayers)
		},
		fix: "keep chunks at 21 layers or fewer",
		evidence: Evidenced{"layers per function", "21 layers (E4B L12-32, about 0.98 GB)", "iPhone 17 Pro",
			"compiles and runs", "measured", "E4B_MULTIMODAL_BUILD.md"},
	},
	{
		id: "package-on-gpu", verdict: VerdictNo,
		meets: func(c *chunking.Chunk, _ *chunking.Plan) bool { return weightBytes(c) >= fallbackBytes },
		text: func(c *chunking.Chunk, _ *chunking.Plan) string {
			return fmt.Sprintf("a package of %.2f GB ran on the GPU without a word", weightBytes(c)/1e9)
		},
		fix: "more chunks or fewer bits",
		evidence: Evidenced{"package size", "one mlpackage above about 1.0-1.4 GB", "iPhone and Mac",
			"silent GPU fallback, 0 % ANE, no error", "measured", "DECODE_STATE_LAYOUTS.md 2 (1.94 GB measured; threshold is a rule of thumb)"},
	},
	{
		id: "package-near-gpu", verdict: VerdictWarning,
		meets: func(c *chunking.Chunk, _ *chunking.Plan) bool {
			return weightBytes(c) >= doubtfulBytes && weightBytes(c) < fallbackBytes
		},
		text: func(c *chunking.Chunk, _ *chunking.Plan) string {
			return fmt.Sprintf("a package of %.2f GB may run on the GPU without a word", weightBytes(c)/1e9)
		},
		fix: "more chunks or fewer bits; read the compute plan on the device",
		evidence: Evidenced{"package size", "one mlpackage above about 1.0-1.4 GB", "iPhone and Mac",
			"silent GPU fallback, 0 % ANE, no error", "measured", "DECODE_STATE_LAYOUTS.md 2 (1.94 GB measured; threshold is a rule of thumb)"},
	},
	{
		id: "package-size-iphone", class: IPhone, verdict: VerdictWarning,
		meets: func(c *chunking.Chunk, _ *chunking.Plan) bool {
			return weightBytes(c) >= phoneBytes && weightBytes(c) < doubtfulBytes
		},
		text: func(c *chunking.Chunk, _ *chunking.Plan) string {
			return fmt.Sprintf("%.0f MB of weights in one program: others cut at 950 MB for phones", weightBytes(c)/1e6)
		},
		fix:      "more chunks",
		evidence: Evidenced{"package size", "chunk cap 950 MB", "iOS", "ANEMLL auto-chunk target", "reported", "ANE_OPTIMIZATION_SURVEY.md"},
	},
	{
		id: "program-2gb", class: Mac, verdict: VerdictNo,
		meets: func(c *chunking.Chunk, _ *chunking.Plan) bool { return weightBytes(c) >= programBytes },
		text: func(c *chunking.Chunk, _ *chunking.Plan) string {
			return fmt.Sprintf("%.2f GB of weights in one program; about 2 GB is the most it can hold", weightBytes(c)/1e9)
		},
		fix:      "more chunks or fewer bits",
		evidence: Evidenced{"package size", "about 2 GB baked weights per program", "Mac", "direct-API limit", "reported", "ane_and_anchors.md A5 [S2]"},
	},
	{
		id: "few-bits", verdict: VerdictWarning,
		meets: func(c *chunking.Chunk, _ *chunking.Plan) bool { return c.Weights.Bits == 2 || c.Weights.Bits == 3 },
		text: func(c *chunking.Chunk, _ *chunking.Plan) string {
			return fmt.Sprintf("weights of %d bits made after training wrote gibberish", c.Weights.Bits)
		},
		fix:      "4 bits in groups of 32, or weights trained for fewer bits",
		evidence: Evidenced{"weight format", "2- and 3-bit post-training palettisation", "Mac", "converts (546 / 818 MB) but output is gibberish", "measured", "EXPERIMENTS.md"},
	},
	{
		id: "argmax-on-cpu", verdict: VerdictNote,
		meets: func(c *chunking.Chunk, _ *chunking.Plan) bool { return c.Head },
		text: func(*chunking.Chunk, *chunking.Plan) string {
			return "the end of the head (soft-cap, argmax, gather) runs on the CPU: 8 ops, 0.3 % of the estimated cost"
		},
		evidence: Evidenced{"ops on CPU", "argmax tail of the head chunk: mul x2, tanh, squeeze x2, reduce_argmax, expand_dims, gather_along_axis", "iPhone 17 Pro",
			"8 ops on CPU, estimated cost share 0.0028", "measured", "EXPERIMENTS.md"},
	},
	{
		id: "context-dimension", verdict: VerdictNo,
		meets: func(c *chunking.Chunk, _ *chunking.Plan) bool { return longestDimension(c) > maxContextANE },
		text: func(c *chunking.Chunk, _ *chunking.Plan) string {
			return fmt.Sprintf("an input of %d rows: a dimension may have %d, less one block", longestDimension(c), maxRowsANE)
		},
		fix: fmt.Sprintf("a context of at most %d, or windows on the full layers", maxContextANE),
		evidence: Evidenced{"dimension", "context entry usable limit 65,472 rows (65,536 minus block)", "A16 generation and later",
			"larger dimensions are rejected", "reported", "spec ane.md A5 [S5]"},
	},
	{
		id: "head-dimension", verdict: VerdictNote,
		meets: func(c *chunking.Chunk, _ *chunking.Plan) bool { return headRows(c) > maxRowsANE },
		text: func(c *chunking.Chunk, _ *chunking.Plan) string {
			return fmt.Sprintf("the head has %d rows and a dimension may have %d: it runs in %d pieces or more", headRows(c), maxRowsANE, (headRows(c)+maxRowsANE-1)/maxRowsANE)
		},
		evidence: Evidenced{"dimension", "LM head over the limit: 262144 rows in 8-16 pieces typically", "A16 generation and later",
			"split by the builder or the compiler", "reported", "spec ane.md A5 [S22], [S23]"},
	},
}

func wholeModel(c *chunking.Chunk, _ *chunking.Plan) bool {
	return c.Totals.Layers >= refusedLayers && c.Head
}

func weightBytes(c *chunking.Chunk) float64 { return float64(c.Totals.WeightBytes) }

// longestDimension of an input: masks and caches are as long as the context.
func longestDimension(c *chunking.Chunk) int {
	longest := 0
	for _, p := range c.Inputs {
		for _, d := range p.Shape {
			longest = max(longest, d)
		}
	}
	return longest
}

// headRows is the height of the LM head, 0 in chunks without one.
func headRows(c *chunking.Chunk) int {
	for _, op := range c.Ops {
		if op.Kind == chunking.OpHead {
			return op.Rows
		}
	}
	return 0
}
