// Package golden answers: what did the reference implementation compute?
//
// A golden is a safetensors file of tensors without batch axis. There are three kinds, told apart by their names, and every
// name, shape and type is checked when the file is opened, so that a misspelt tensor is an error and never a tensor that
// nobody compares:
//
//	Passes   <case>.<tensor>[.<layer>]   whole forward passes without a cache, cases T1, T7 … named after their length
//	Decode   <tensor>[.<layer>]          one prompt, then greedy steps of one token with the cache
//	Formula  <tensor>[.<layer>]          real dimensions, weights from a formula; excerpts that fit in a file
//
// Tensor names are those of the taps. Values are float32 (a float64 golden is rounded on reading), in row-major order of
// the shapes in names.go.
//
// What such files are good for ends where they are wrong themselves: [File.CheckSharing] tests that the reference shared keys
// and values as the architecture says before anyone trusts the rest.
//
// Start at [Open].
package golden
