// Package blob answers: where in a weights file do the bytes of a constant lie?
//
// Packages and compiled models keep large constants in weight.bin, "blob storage" version 2. Little-endian, uncompressed:
//
//	header, 64 bytes      u32 count   u32 version = 2   56 zero bytes
//	per blob, each part starting on a 64-byte boundary:
//	  metadata, 64 bytes  u32 0xDEADBEEF   u32 type   u64 size   u64 data offset   u64 padding bits   32 bytes reserved
//	  data                size bytes; the bits after the last element of a sub-byte type are the padding bits
//
// A program refers to a blob by the offset of its metadata. Files are mapped; bytes are handed out as parts of the mapping and
// are valid until Close. Element types have numbers of their own here, which are not those of the protobuf.
//
// Faults are *format.Error; their cause is one of the Err variables.
//
// Start at [Open] and [Files] to read, at [NewWriter] to write.
package blob
