// Package miltext answers: what does the text form of a Core ML program say?
//
// Compiled models (.mlmodelc) hold their program as text, in model.mil, beside the same weights files that packages have:
//
//	program(1.3)
//	[buildInfo = dict<string, string>({{"coremlc-version", "3600.25.1"}})]
//	{
//	    func main<ios18>(tensor<fp16, [1, 64]> x, state<tensor<fp16, [8, 64]>> kv) {
//	            fp16 two = const()[name = string("two"), val = fp16(0x1p+1)];
//	            tensor<fp16, [1, 64]> y = mul(x = x, y = two)[name = string("y")];
//	        } -> (y);
//	}
//
// There are two dialects: program(1.0), for specification versions up to 8, writes every scalar as a tensor of rank 0,
// tensor<fp16, []>(0x1p+1); program(1.3) writes fp16(0x1p+1). Both are read; [Print] writes either, byte for byte as the compiler does as far
// as texts of it are known. Inputs of functions, operands and attributes are printed in order of name. Floating-point numbers are in
// hexadecimal, except inside lists and dictionaries.
//
// Not known from any text, and refused: ops with nested blocks.
//
// Faults are *format.Error with line and column in Field.
//
// Start at [Open] for a compiled model, at [Parse] for a text.
package miltext
