// Package mil answers: what does a Core ML program say, and is it well formed?
//
// A program is data. Nothing here knows a file format, runs an op or prints; codecs, interpreters and emitters share these types.
//
//	Program
//	└─ Function            main, decode_q1, …: typed inputs (tensors and states), an opset, one body
//	   └─ Block            ops in execution order; Outputs names the results
//	      └─ Op            type, Inputs (parameter → bindings), Outputs (name and Type), Attributes, nested Blocks
//	         └─ Binding    the name of an earlier result, or a *Value given in place
//	Value                  a Type and its Content: Raw bytes, Strings, Items, Pairs, or a Blob in a weights file
//
// Conventions:
//
//   - Tensors are row-major. The bytes of a tensor are little-endian; elements narrower than a byte are packed from the least
//     significant bit of one continuous stream, without padding between rows; a bool takes a byte.
//   - A scalar is a tensor of rank 0. A dimension that the program leaves open is [Unknown].
//   - Values are in single assignment: a name is defined once per block and used after its definition. Order matters: ops on
//     states have effects.
//   - Inputs and Attributes are sorted by name, so that two programs can be compared.
//   - Faults found in a program are *[Fault]: they carry function, op, operand, what was found and what is allowed, and unwrap to
//     one of the Err variables.
//
// To add an op, add a line to the table of its family (ops_*.go); everything else follows from it.
//
// Start at [Program], then [Check].
package mil
