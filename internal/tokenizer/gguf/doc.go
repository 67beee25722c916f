// Package gguf answers: what does a GGUF file say about itself, and is it whole?
//
// It reads the metadata and the list of tensors, not the tensors:
//
//	"GGUF" version u32, tensors u64, keys u64
//	key: string, type u32, value            a string is a length u64 and bytes
//	tensor: name, n u32, dims n×u64, type u32, offset u64
//	padding to general.alignment, tensor data
//
// Everything is little-endian. Every count and length comes from the file, so each is compared with the bytes that are left
// before anything is allocated: memory stays within a small multiple of the file's size. Values are read where they lie: a [Value]
// is a view of the bytes, valid as long as they are.
//
// Start at [Parse].
package gguf
