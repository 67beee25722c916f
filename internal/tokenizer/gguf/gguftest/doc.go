// Package gguftest answers, for tests only: what are the bytes of a GGUF file with these keys and tensors?
//
// A [Builder] collects keys, each with its bytes as the format lays them out, and writes whatever it is told, right or wrong:
//
//	(&gguftest.Builder{}).Text("general.architecture", "gemma4").Uint32("general.alignment", 3).Bytes()
//
// Start at [Builder].
package gguftest
