package place

import "strings"

// Rule names why the engine does not take an op.
type Rule string

// The rules, each met in compilers' messages or in the public record.
const (
	RuleOp        Rule = "op"         // no such op on the engine
	RuleConverter Rule = "converter"  // the op has a name there and no implementation
	RuleScatter   Rule = "scatter"    // writes at computed places
	RuleType      Rule = "type"       // an element type that the engine does not compute with
	RulePort      Rule = "port-type"  // an input or output of such a type
	RuleOutput    Rule = "index-type" // a result that is wide indices
	RuleOperand   Rule = "operand"    // a constant operand of such a type
	RuleGather    Rule = "gather"     // reads at computed places
	RuleKernel    Rule = "kernel"     // a window that is too large
	RuleDimension Rule = "dimension"  // a dimension, a contraction or a rank beyond what the engine addresses
	RuleDynamic   Rule = "dynamic"    // a shape or a place that is known only when the program runs
	RuleDepthwise Rule = "depthwise"  // a convolution channel by channel, over many channels
	RuleSize      Rule = "size"       // the program has more weights than the engine's compiler takes
	RuleSettings  Rule = "settings"   // the op is known, but not with these operands
	RuleOther     Rule = "other"      // a message that nobody has met
)

// Source says what a rule rests on.
func (r Rule) Source() string { return sources[r] }

var sources = map[Rule]string{
	RuleOp:        "compiler's message on M4, macOS 27; op matrix of ANEForge for A13 to A17",
	RuleConverter: "compiler's message on M4, macOS 27; op matrix of ANEForge",
	RuleScatter:   "compiler's message on M4, macOS 27; rejected at any precision, spec ane.md A5 [S24]",
	RuleType:      "compiler's message on M4, macOS 27; spec ane.md A5 [S1]",
	RulePort:      "compiler's message on M4, macOS 27; spec ane.md A5 [S1]",
	RuleOutput:    "compiler's message on M4, macOS 27; argmax on the CPU in limits.csv",
	RuleOperand:   "compiler's message on M4, macOS 27",
	RuleGather:    "compiler's message on M4, macOS 27; runtime gather in limits.csv",
	RuleKernel:    "compiler's message on M4, macOS 27; spec ane.md A5 [S2],[S1]",
	RuleDimension: "spec ane.md A5 [S2],[S1]; a ladder of GEMVs on macOS 15 (SIM-02)",
	RuleDynamic:   "spec ane.md A5 [S1]; flexible shapes in limits.csv",
	RuleDepthwise: "depthwise conv of LFM2 in limits.csv",
	RuleSettings:  "compiler's message",
	RuleSize:      "silent GPU fallback in limits.csv",
}

// messages are what compilers say, by what is constant in it. The first that occurs counts.
var messages = []struct {
	part string
	rule Rule
}{
	{"live-in not created", RulePort},
	{"live-out not created", RulePort},
	{"scatter", RuleScatter},
	{"Unsupported MIL operation", RuleOp},
	{"converter not implemented", RuleConverter},
	{"gather index type", RuleGather},
	{"Unsupported tensor data type", RuleType},
	{"Output type", RuleOutput},
	{"Unable to resolve operation input", RuleOperand},
	{"kernel", RuleKernel},
	{"only supported on", RuleOp},
	{"dynamic", RuleDynamic},
	{"rank", RuleDimension},
	{"dimension", RuleDimension},
	{"data type", RuleType},
	{"dtype", RuleType},
	{"index type", RuleGather},
	{"not supported", RuleSettings},
	{"nsupported", RuleSettings},
	{"not implemented", RuleConverter},
	{"must", RuleSettings},
	{"requires", RuleSettings},
	{"xpected", RuleSettings},
	{"nvalid", RuleSettings},
	{"annot", RuleSettings},
	{"ailed", RuleSettings},
	{"Error", RuleSettings},
}

// RuleOf names the rule behind a compiler's message.
func RuleOf(message string) Rule {
	for _, m := range messages {
		if strings.Contains(message, m.part) {
			return m.rule
		}
	}
	return RuleOther
}

// Refusal is a rule that an op meets.
type Refusal struct {
	Rule Rule
	Text string // what about the op
}

// Limits are the numbers of the rules for a generation of chips.
type Limits struct {
	Dimension    int64 // of any tensor, and of a contraction of convolutions and linears
	Contraction  int64 // of matmul
	Kernel       int64 // width and height of a convolution's window
	Pool         int64 // of a maximum's
	Rank         int   // of a matmul's operands
	Depthwise    int64 // channels from which a convolution channel by channel is refused
	ProgramBytes int64 // weights of a program; beyond it the GPU runs all of it
	Source       string
}

// Since16 are the limits from the A16 and M4 generation on.
var Since16 = Limits{Dimension: 65536, Contraction: 32768, Kernel: 15, Pool: 8, Rank: 4, Depthwise: 1024, ProgramBytes: 1.4e9, Source: "spec ane.md A5 [S2],[S1]; limits.csv"}

// Before16 are the limits up to the A15 generation.
var Before16 = Limits{Dimension: 16384, Contraction: 16384, Kernel: 15, Pool: 8, Rank: 4, Depthwise: 1024, ProgramBytes: 1.4e9, Source: "spec ane.md A5 [S2]; SIM-02"}

// unavailable are the ops that the engine does not have, with the rule they fall under.
var unavailable = ruleOfOps(map[Rule]string{
	RuleOp: "acos asin atanh band_part classify cond cosh crop_resize cumsum gru list_gather list_length list_read list_scatter list_write " +
		"logical_and logical_or logical_xor lstm make_list mod non_maximum_suppression non_zero one_hot random_bernoulli random_categorical " +
		"random_normal range_1d reduce_prod reverse_sequence rnn shape sinh tan while_loop",
	RuleConverter: "sliding_windows",
	RuleScatter:   "scatter scatter_along_axis scatter_nd",
})

func ruleOfOps(lists map[Rule]string) map[string]Rule {
	all := map[string]Rule{}
	for rule, list := range lists {
		for _, op := range strings.Fields(list) {
			all[op] = rule
		}
	}
	return all
}
