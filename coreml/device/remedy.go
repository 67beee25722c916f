package device

import "strings"

// remedies are causes that people have found behind texts of Core ML (spec coreml.md §7).
var remedies = []struct{ text, fix string }{
	{"error code: -14", "usually the Neural Engine's compiler met a pattern it does not take: load with units cpu; if that works, compare Plan's ops with those of a package that loads"},
	{"not found in Core ML model inputs", "a state that the program has and the description has not: simulate inspect shows both"},
	{"functionName property must be nil", "the compiled model has a single function: compile the package again"},
	{"Unknown opset", "this macOS is older than the package's specification version: simulate inspect shows it"},
	{"Storage Reader expects", "weight.bin has another format: simulate inspect checks it"},
	{"ANECCompile", "the Neural Engine's compiler gave up, often because the program is too large or has three or more states: make smaller chunks"},
	{"mps.dequantize", "a palette followed by a scale: fold the scale into the palette"},
	{"bad_cast", "a slice of a state that is an output too, or int32 inputs of flexible length: give the output a copy"},
}

// remedy is what to do about a text of Core ML, "" if nobody knows.
func remedy(text string) string {
	for _, r := range remedies {
		if strings.Contains(text, r.text) {
			return r.fix
		}
	}
	return ""
}
