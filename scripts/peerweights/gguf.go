package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strings"

	"anelab/gemma4"
	"anelab/internal/half"
)

// GGUF constants, from the format's description.
const (
	typeU32, typeF32, typeBool, typeString, typeArray = 4, 6, 7, 8, 9
	tensorF32, tensorQ40                              = 0, 2
	ggufAlignment                                     = 32
)

// encoder writes the little-endian pieces of a GGUF header.
type encoder struct{ b []byte }

func (e *encoder) u32(v uint32)           { e.b = binary.LittleEndian.AppendUint32(e.b, v) }
func (e *encoder) u64(v uint64)           { e.b = binary.LittleEndian.AppendUint64(e.b, v) }
func (e *encoder) str(s string)           { e.u64(uint64(len(s))); e.b = append(e.b, s...) }
func (e *encoder) key(k string, t uint32) { e.str(k); e.u32(t) }

func (e *encoder) kvU32(k string, v int)     { e.key(k, typeU32); e.u32(uint32(v)) }
func (e *encoder) kvF32(k string, v float64) { e.key(k, typeF32); e.u32(math.Float32bits(float32(v))) }
func (e *encoder) kvStr(k, v string)         { e.key(k, typeString); e.str(v) }

// metadata is the model's keys; n counts them.
func metadata(c gemma4.Config, layers []gemma4.Layer) (e encoder, n int) {
	e.kvStr("general.architecture", "gemma4")
	e.kvStr("general.name", "random E2B")
	full := layers[len(layers)-1]
	for k, v := range map[string]int{
		"block_count": len(layers), "context_length": c.MaxPositionEmbeddings, "embedding_length": c.HiddenSize,
		"attention.head_count": c.NumAttentionHeads, "attention.head_count_kv": c.NumKeyValueHeads,
		"attention.key_length": full.HeadDim, "attention.value_length": full.HeadDim,
		"attention.key_length_swa": c.HeadDim, "attention.value_length_swa": c.HeadDim,
		"attention.sliding_window": c.SlidingWindow, "attention.shared_kv_layers": c.NumKVSharedLayers,
		"rope.dimension_count": full.HeadDim, "rope.dimension_count_swa": c.HeadDim,
		"embedding_length_per_layer_input": c.HiddenSizePerLayer,
	} {
		e.kvU32("gemma4."+k, v)
		n++
	}
	for k, v := range map[string]float64{"attention.layer_norm_rms_epsilon": c.RMSNormEps, "rope.freq_base": full.Rope.Theta,
		"rope.freq_base_swa": layers[0].Rope.Theta, "final_logit_softcapping": c.FinalLogitSoftcapping} {
		e.kvF32("gemma4."+k, v)
		n++
	}
	e.key("gemma4.feed_forward_length", typeArray)
	e.u32(typeU32)
	e.u64(uint64(len(layers)))
	for _, y := range layers {
		e.u32(uint32(y.FFN))
	}
	e.key("gemma4.attention.sliding_window_pattern", typeArray)
	e.u32(typeBool)
	e.u64(uint64(len(layers)))
	for _, y := range layers {
		e.b = append(e.b, map[gemma4.Kind]byte{gemma4.Sliding: 1, gemma4.Full: 0}[y.Kind])
	}
	return e, n + 4
}

// tokenizerKeys copies the tokenizer's keys out of a vocabulary file, as bytes.
func tokenizerKeys(path string) (b []byte, n int, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, err
	}
	defer func() {
		if recover() != nil {
			b, n, err = nil, 0, fmt.Errorf("%s: not a GGUF file, or a damaged one", path)
		}
	}()
	at := 24
	for range binary.LittleEndian.Uint64(data[16:]) {
		start := at
		length := int(binary.LittleEndian.Uint64(data[at:]))
		key := string(data[at+8 : at+8+length])
		at += 8 + length
		at = skipValue(data, at+4, binary.LittleEndian.Uint32(data[at:]))
		if strings.HasPrefix(key, "tokenizer.") {
			b, n = append(b, data[start:at]...), n+1
		}
	}
	return b, n, nil
}

// skipValue returns where a value of the type ends.
func skipValue(data []byte, at int, kind uint32) int {
	switch kind {
	case typeString:
		return at + 8 + int(binary.LittleEndian.Uint64(data[at:]))
	case typeArray:
		inner, count := binary.LittleEndian.Uint32(data[at:]), binary.LittleEndian.Uint64(data[at+4:])
		at += 12
		for range count {
			at = skipValue(data, at, inner)
		}
		return at
	}
	return at + []int{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8}[kind]
}

// writeGGUF writes matrices as Q4_0 and vectors as F32.
func writeGGUF(path, vocab string, c gemma4.Config, tensors []tensor) error {
	layers, err := c.Layers()
	if err != nil {
		return err
	}
	tokenizer, keys, err := tokenizerKeys(vocab)
	if err != nil {
		return err
	}
	meta, more := metadata(c, layers)
	var e encoder
	e.b = append(e.b, "GGUF"...)
	e.u32(3)
	e.u64(uint64(len(tensors) + 1))
	e.u64(uint64(keys + more))
	e.b = append(append(e.b, meta.b...), tokenizer...)
	offset := e.describe("rope_freqs.weight", []int{layers[len(layers)-1].HeadDim / 2}, tensorF32, 0)
	for _, t := range tensors {
		if t.cols == 0 {
			offset = e.describe(t.gguf, []int{t.rows}, tensorF32, offset)
		} else {
			offset = e.describe(t.gguf, []int{t.cols, t.rows}, tensorQ40, offset)
		}
	}
	e.pad()
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	w.Write(e.b)
	writeVector(w, ropeFactors(layers))
	for i := range tensors {
		writeTensor(w, &tensors[i])
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// describe adds a tensor's header and returns where the next one starts.
func (e *encoder) describe(name string, dims []int, kind uint32, offset uint64) uint64 {
	e.str(name)
	e.u32(uint32(len(dims)))
	n := uint64(1)
	for _, d := range dims {
		e.u64(uint64(d))
		n *= uint64(d)
	}
	e.u32(kind)
	e.u64(offset)
	bytes := 4 * n
	if kind == tensorQ40 {
		bytes = n / 32 * 18
	}
	return offset + (bytes+ggufAlignment-1)&^uint64(ggufAlignment-1)
}

func (e *encoder) pad() {
	for len(e.b)%ggufAlignment != 0 {
		e.b = append(e.b, 0)
	}
}

// ropeFactors divide the angles: one where a pair turns, 1e30 where it stays.
func ropeFactors(layers []gemma4.Layer) []float32 {
	full := layers[len(layers)-1]
	x := make([]float32, full.HeadDim/2)
	for i := range x {
		x[i] = 1
		if i >= full.Rope.Pairs {
			x[i] = 1e30
		}
	}
	return x
}

func writeVector(w *bufio.Writer, x []float32) {
	var e encoder
	for _, v := range x {
		e.u32(math.Float32bits(v))
	}
	e.pad()
	w.Write(e.b)
}

func writeTensor(w *bufio.Writer, t *tensor) {
	if t.cols == 0 {
		x := make([]float32, t.rows)
		for i := range x {
			x[i] = t.value
		}
		writeVector(w, x)
		return
	}
	q, block := make([]byte, t.cols), [18]byte{}
	binary.LittleEndian.PutUint16(block[:], half.F32ToF16(t.value))
	for r := range t.rows {
		t.fill(r, q)
		for i := 0; i < t.cols; i += 32 {
			for k := range 16 {
				block[2+k] = q[i+k] | q[i+16+k]<<4
			}
			w.Write(block[:])
		}
	}
	if rest := t.rows * t.cols / 32 * 18 % ggufAlignment; rest != 0 {
		w.Write(make([]byte, ggufAlignment-rest))
	}
}
