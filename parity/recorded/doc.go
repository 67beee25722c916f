// Package recorded answers: which calls of a Core ML program were recorded, and how near to them must a result be?
//
//	NAME.safetensors ─┐
//	index.json ───────┴─ Open ─► File ─┬─ Cases, in order
//	                                   ├─ Call(case)      what goes in
//	                                   └─ Expected(case)  what came out, and the tolerances
//
// The names of the tensors in a file:
//
//	CASE/in/INPUT           input, in the type that the program declares
//	CASE/out/OUTPUT         expected output, in float32 whatever the program's type; int32 for integers
//	CASE/state_in/STATE     contents of a state before and after the call
//	CASE/state_out/STATE
//	NAME                    in a file without cases: an input, or an expected output
//
// index.json, beside the file, says how calls follow on each other and what tolerances they are held to. Without one, cases run in
// the order of their names, numbers by value; a case that brings a state starts from it, others go on with that of the case before.
//
// Start at [Open].
package recorded
