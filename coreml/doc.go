// Package coreml answers: what can a program without a Mac do with Core ML models?
//
// It holds no code; it is the front door of the packages below it, each usable by itself:
//
//	coreml/mil         programs as data: functions, blocks, ops, typed values; type inference and a checker
//	coreml/mil/blob    weight.bin: where the bytes of large constants lie
//	coreml/mlpackage   .mlpackage folders, read and written (own protobuf codec, no generated code)
//	coreml/miltext     the text form inside compiled .mlmodelc folders, parsed and printed
//
// Both readers yield a [anelab/coreml/mil.Program]; consumers need not know where it came from. Weights stay in their mapped
// file until an op asks for them.
//
// Start at mlpackage.Open for a package, at miltext.Open for a compiled model.
package coreml
