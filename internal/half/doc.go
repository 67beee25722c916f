// Package half converts between float32 and the two 16-bit storage formats, IEEE binary16 (fp16) and bfloat16.
//
// All narrowing conversions round to nearest, ties to even. Overflow goes to infinity unless the name says Saturate.
// Subnormals are kept. Every conversion is a pure function of bits, so results are the same on every architecture.
//
// The scalar fp16 conversions are x448/float16's; the tables and slices here exist because one value at a time is too
// slow for weight streams.
//
// Start at [F32ToF16].
package half
