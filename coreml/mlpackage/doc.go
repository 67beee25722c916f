// Package mlpackage answers: what is in an .mlpackage, and how is one written without losing another?
//
//	X.mlpackage/
//	  Manifest.json                                items, and which of them is the model
//	  Data/com.apple.CoreML/model.mlmodel          a serialized model ([anelab/coreml/mlpackage/spec])
//	  Data/com.apple.CoreML/weights/weight.bin     large constants ([anelab/coreml/mil/blob])
//
// Open follows the manifest, reads the model, looks at every blob that the program refers to, and checks the program
// ([anelab/coreml/mil.Check]) and that its description agrees with it. What it returns is sound; weights are read from their mapped
// file when they are asked for. Paths in a manifest and in a program must stay inside the package.
//
// Write makes the package beside its target and renames it. Blobs are streamed, so that memory does not grow with the weights.
// Reading a package and writing it gives the same weights byte for byte and a model that means the same; fields that nobody here
// understands are written back as they were.
//
// Faults are *format.Error: file, field (function, op and operand where there is one), found, wanted, what to do.
//
// Start at [Open].
package mlpackage
