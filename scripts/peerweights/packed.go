package main

import (
	"encoding/binary"
	"strconv"
	"strings"

	"anelab/internal/checkpoint/packed"
	"anelab/internal/half"
	"anelab/internal/kernel"
	"anelab/quant"
)

func itoa(n int) string { return strconv.Itoa(n) }

// writePacked writes the tables as bytes, which hold q−8 exactly, the rest and the head as palettes d·(i−8).
func writePacked(path string, config []byte, tensors []tensor) error {
	w, err := packed.Create(path, config)
	if err != nil {
		return err
	}
	for i := range tensors {
		if err := packTensor(w, &tensors[i]); err != nil {
			w.Abort()
			return err
		}
	}
	return w.Commit()
}

func packTensor(w *packed.Writer, t *tensor) error {
	switch {
	case t.cols == 0:
		return w.Dense(quant.Tensor{Name: t.name, DType: quant.F16, Shape: []int{t.rows}, Data: repeat(t.value, t.rows)})
	case t.name == "embed_tokens.weight":
		if err := packTable(w, t); err != nil {
			return err
		}
		return packPalette(w, t, packed.Head)
	case strings.HasPrefix(t.name, "embed_"):
		return packTable(w, t)
	}
	return packPalette(w, t, t.name)
}

// repeat is n times the fp16 bytes of a value.
func repeat(value float32, n int) []byte {
	var b []byte
	for range n {
		b = binary.LittleEndian.AppendUint16(b, half.F32ToF16(value))
	}
	return b
}

func packTable(w *packed.Writer, t *tensor) error {
	return w.Bytes8(t.name, [2]int{t.rows, t.cols}, func(r int, line []byte) float32 {
		t.fill(r, line)
		for i := range line {
			line[i] -= 8
		}
		return t.value
	})
}

func packPalette(w *packed.Writer, t *tensor, name string) error {
	k := kernel.NewPalette4(t.rows, t.cols)
	for i := range k.LUT {
		k.LUT[i] = t.value * float32(i%16-8)
	}
	line := make([]byte, t.cols)
	for r := range t.rows {
		t.fill(r, line)
		k.SetRow(r, line)
	}
	return w.Palette(name, quant.NewPacked(k, kernel.GroupRows))
}
