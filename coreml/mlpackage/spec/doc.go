// Package spec answers: what does a serialized Core ML model say?
//
// It is the protobuf codec for the messages that ML programs need: Model, ModelDescription, Program and what they contain. The
// wire format is read and written by hand: no generated code, no protobuf module. Fields that this package does not know are kept
// byte for byte and written back; map entries are written in order of key, so that equal models give equal bytes.
//
// Memory: the structure built from n bytes is counted while it grows, and refused beyond 4·n + 1 MiB. Strings and constants given
// in place are parts of the input, not copies.
//
// Faults are *format.Error with the message and byte offset in Field.
//
// Start at [Decode] and [Encode].
package spec
