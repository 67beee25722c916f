// Package packed answers: what is the fastest form to start a model from?
//
// A packed file holds the text model's weights as the kernels read them, so that opening it maps memory and computes nothing:
//
//	"ANELABP1" │ data of every tensor, each at a multiple of 64 │ JSON directory │ trailer
//
//	trailer    directory offset, directory length (u64), CRC-32C of the directory, version (u32), "ANELABPE"
//	palette4   indices, rows in lanes (kernel.Palette4), and one fp16 table of 16 entries per 32 rows
//	linear8    signed bytes, row-major, and one float32 scale per row
//	dense      f32, f16 or bf16, row-major
//
// The directory comes last so that a file is written in one pass. Everything has a checksum: the directory's is checked on
// opening, a weight's when it is first asked for, those of the tables that are only looked up by row on request ([File.Verify]),
// because reading them would cost more than a start may take. A file of another version, for another configuration, with a tensor
// that reaches beyond its end or into another, is refused.
//
// Version 2 has choices in its directory: what the converter of packages decided, so that the packed model computes what they do
// ([Choices]). A reader refuses one that it does not know. A model without choices is a file of version 1.
//
// Start at [Open]; [Create] makes such a file.
package packed
