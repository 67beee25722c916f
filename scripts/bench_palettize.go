//go:build ignore

// Command bench_palettize palettizes the tensor "weight" of a safetensors file with 4 bits in groups of 32 rows, and prints the
// seconds taken and a digest of tables and indices. bench_palettize.sh builds and calls it.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"time"

	"anelab/internal/checkpoint/safetensors"
	"anelab/internal/half"
	"anelab/quant"
)

func main() {
	set, err := safetensors.Open(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer set.Close()
	t, err := set.Tensor("weight")
	if err != nil {
		log.Fatal(err)
	}
	m, err := quant.Dense(t)
	if err != nil {
		log.Fatal(err)
	}
	start := time.Now()
	p, err := quant.Palettize(context.Background(), m, quant.Options{Bits: 4, Group: 32}, nil)
	if err != nil {
		log.Fatal(err)
	}
	taken := time.Since(start)
	var bytes []byte
	for g := range p.Groups() {
		for _, x := range p.Table(g) {
			bytes = binary.LittleEndian.AppendUint16(bytes, half.F32ToF16(x))
		}
	}
	fmt.Printf("%.9f %x\n", taken.Seconds(), sha256.Sum256(append(bytes, p.Indices()...)))
}
