// Command peerweights writes one model of E2B's dimensions with random 4-bit weights twice: as a GGUF file of Q4_0 blocks for
// llama.cpp, and as a packed file for simulate. Both hold the same numbers, d·(q−8) with d a power of two for each tensor, so the two
// programs do the same work on the same weights. scripts/bench_peer.sh uses it.
//
//	go run ./scripts/peerweights -vocab VOCAB.gguf -gguf OUT.gguf -packed OUT.anelab [-seed 1]
//
// The vocabulary file gives the tokenizer that llama.cpp insists on; llama.cpp ships one.
//
// Start at main.
package main
