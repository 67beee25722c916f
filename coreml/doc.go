// Package coreml answers: what can a program do with Core ML models, with a Mac and without one?
//
// It is the front door of the packages below it, each usable by itself. [Open] opens a model in either of its forms, and says which of
// its functions decodes; [CheckContexts] whether models can be the chunks of one.
//
//	coreml/mil         programs as data: functions, blocks, ops, typed values; type inference and a checker
//	coreml/mil/blob    weight.bin: where the bytes of large constants lie
//	coreml/mlpackage   .mlpackage folders, read and written (own protobuf codec, no generated code)
//	coreml/miltext     the text form inside compiled .mlmodelc folders, parsed and printed
//	coreml/census      what a program consists of, and what its weights weigh
//	coreml/compress    weights in few bits: palettes and integers in place of floats
//	coreml/interp      programs executed, with a chosen rounding, on any machine
//	coreml/bundle      a folder of chunks as an app would load it, down to the tokens
//	coreml/place       which op the Neural Engine would take, and why it refuses the others
//	coreml/device      Core ML itself, on a Mac: times, placement, outputs; elsewhere an error that says what to do
//
//	.mlpackage ─┐                    ┌─► interp.New ─► outputs ─┐
//	            ├ Open ─► mil.Program ┤                          ├─ compared by parity
//	.mlmodelc ──┘                    ├─► census, compress, place │
//	                                 └─► mlpackage.Write         │
//	the package's files ─────────────► device.Open ─► outputs ──┘
//
// Both readers yield a [anelab/coreml/mil.Program]; consumers need not know where it came from. Weights stay in their mapped
// file until an op asks for them. The device is given the files and no program: it reads them by itself.
//
// Start at [Open] for a model, at interp.New to run it, at bundle.Open for a folder of chunks.
package coreml
