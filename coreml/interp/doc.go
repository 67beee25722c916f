// Package interp answers: what does a Core ML program compute, on a machine without Core ML?
//
// A [Model] is a program made ready once: constants are viewed where they lie, palettes are put in the order the kernels want, and
// every op has found its implementation. A call gives tensors to the inputs of one function and gets those of its outputs;
// states live in a [State] between calls.
//
//	mil.Program ─ New(options) ─► Model ─ Run(ctx, function, inputs, Call{State, Tap}) ─► outputs
//
// Numbers are rounded as the [Precision] says, once per op, to the type that the program declares for the op's result:
//
//	exact   float32 everywhere, sums in float64
//	fp16    fp16 tensors are rounded to fp16, overflow is infinite: a CPU
//	ane     as fp16, but overflow saturates: spec forward.md §5.3, bit for bit the ane mode of the Go model
//	fast    float32 with the float32 kernels of the Go model
//
// The arithmetic is that of [anelab/internal/arith]: convolutions, linears and products of one kind are one operation there.
//
//	constant  a value known before the program runs; weights stay in their packed bytes ([anelab/quant])
//	array     a tensor while the program runs: a strided view of float32 or int32 elements, so that ops which only rearrange move nothing
//	call      one op with its operands; ops_*.go hold the implementations, one table per family
//
// Conventions: tensors given and taken are row-major; elements of floating types are float32 numbers that the type can hold, of
// integer types and bools int32. Ops run strictly in program order. Ties of argmax and sorts go to the lowest index.
//
// What is wrong with a call's inputs is a *format.Error whose cause is one of the Err variables.
//
// Start at [New].
package interp
