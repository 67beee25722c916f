// Package device answers: what does Core ML itself make of a package, and how long does it take?
//
// It compiles, loads and runs packages through Apple's framework, without cgo: messages go to the Objective-C runtime through
// github.com/ebitengine/purego. That needs macOS and the build tag coreml; everywhere else the same functions return
// [ErrUnavailable] with what to do, so callers need no build tags of their own.
//
//	.mlpackage ─ Open(units) ─► Model ─ Predict(function, inputs, state) ─► Prediction{Outputs, timings}
//	                              ├─ NewBuffer, Run   the same arrays in every call, on an IOSurface where copies matter
//	                              ├─ NewState         what lives between calls (macOS 15)
//	                              └─ Plan             where Core ML means to run every op (macOS 14.4)
//	Measure ─► Report                                 one JSON document of all of that, for simulate
//
// Above the line of messages (runtime.go) everything is ordinary Go, tested on any system against a runtime that counts what is
// retained and released. Below it are two files: runtime_darwin.go sends the messages, runtime_other.go says that there is nobody to
// send them to.
//
// Conventions:
//
//	memory    Core ML allocates arrays; elements are copied in and out. No Go memory is ever lent to it.
//	objects   what a message returns is borrowed until the pool of the scope is drained; alloc, new and blocks are ours to release
//	threads   a scope stays on one thread, because pools belong to threads. One prediction at a time per model function, per state
//	          and per buffer; others wait. Completion handlers run on threads of the system and only pass on what they retain
//	mistakes  an Objective-C exception would end the process, so names and shapes are held against the model's own description
//	          before they are sent, and methods of newer systems are asked for first
//
// Tensors have the fields of interp.Tensor, so that one converts to the other.
//
// Start at [Open].
package device
