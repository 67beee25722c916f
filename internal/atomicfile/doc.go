// Package atomicfile answers: how does a file appear under its name whole, or not at all?
//
// It is written beside its target under a temporary name, made durable, and renamed. Until then whatever had the name keeps it.
//
// Start at [Create].
package atomicfile
