// Package npy answers: what array is in a .npy file, and how is one written that numpy.load reads?
//
// Read gives a view of the file's elements, whatever their type; Write takes float32 values, which hold every fp16 and bf16 number.
// Headers are Python literals; the few that the format needs are parsed, nothing is evaluated.
//
// Conventions: C order, little-endian. Faults are *format.Error with the field of the header.
//
// Start at [Read].
package npy
