package quality

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"anelab/gemma4"
	"anelab/quant"
)

// Source is a checkpoint that can list and describe its tensors.
type Source interface {
	gemma4.MatrixSource
	Names() []string
	Describe(name string) (quant.Tensor, error)
}

// fingerprintBytes is how much of the two ends of a tensor a fingerprint looks at: all of a small model, and enough of a large one
// to tell trainings apart without reading gigabytes.
const fingerprintBytes = 1 << 16

// Fingerprint identifies a checkpoint by content: its config, and name, type, shape and both ends of every tensor.
func Fingerprint(c gemma4.Config, src Source) (string, error) {
	h := sha256.New()
	text, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	h.Write(text)
	for _, name := range src.Names() {
		d, err := src.Describe(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "\n%s %s %v ", name, d.DType, d.Shape)
		if t, err := src.Tensor(name); err == nil {
			h.Write(t.Data[:min(len(t.Data), fingerprintBytes)])
			h.Write(t.Data[max(len(t.Data)-fingerprintBytes, 0):])
			continue
		}
		if err := hashRows(h.Write, src, name); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashRows stands in for the bytes of a tensor that the source holds in a form of its own: its first and its last row.
func hashRows(write func([]byte) (int, error), src Source, name string) error {
	m, err := src.Matrix(name)
	if err != nil {
		return err
	}
	row := make([]float32, m.Cols())
	for _, r := range []int{0, m.Rows() - 1} {
		m.Row(row, r)
		for _, v := range row {
			if _, err := write(strconv.AppendFloat(nil, float64(v), 'x', -1, 32)); err != nil {
				return err
			}
		}
	}
	return nil
}

// encoded is a source whose weights are stored in other encodings.
type encoded struct {
	Source
	ctx    context.Context
	layers map[int]quant.Encoding
	tables quant.Encoding
	head   quant.Encoding
}

// reencode wraps the source of a unit with its encodings.
func reencode(ctx context.Context, src Source, u Unit) (gemma4.Source, error) {
	e := &encoded{Source: src, ctx: ctx, layers: map[int]quant.Encoding{}}
	for _, w := range u.Weights {
		enc, err := quant.ParseEncoding(w.Value)
		if err != nil {
			return nil, err
		}
		e.layers[w.Layer] = enc
	}
	for _, x := range []struct {
		text string
		into *quant.Encoding
	}{{u.Tables, &e.tables}, {u.Head, &e.head}} {
		if x.text == "" {
			continue
		}
		var err error
		if *x.into, err = quant.ParseEncoding(x.text); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// Head is the tied table in an encoding of its own where the unit has one.
func (e *encoded) Head() (quant.Matrix, error) {
	if e.head == (quant.Encoding{}) {
		return e.Source.Head()
	}
	m, err := e.Source.Matrix("embed_tokens.weight")
	if err != nil {
		return nil, err
	}
	return Encode(e.ctx, m, e.head)
}

// Matrix is the weight in its encoding. Every linear gets it whatever its size, and the last group of rows may be smaller than the
// others.
func (e *encoded) Matrix(name string) (quant.Matrix, error) {
	m, err := e.Source.Matrix(name)
	if err != nil {
		return nil, err
	}
	enc, ok := e.encoding(name)
	if !ok || m.Encoding() == enc {
		return m, nil
	}
	return Encode(e.ctx, m, enc)
}

// encoding of a weight; false for what stays as it is.
func (e *encoded) encoding(name string) (quant.Encoding, bool) {
	if strings.HasPrefix(name, "embed_tokens") {
		return e.tables, e.tables != quant.Encoding{}
	}
	layer := outside
	if rest, ok := strings.CutPrefix(name, "layers."); ok {
		digits, _, _ := strings.Cut(rest, ".")
		if n, err := strconv.Atoi(digits); err == nil {
			layer = n
		}
	}
	enc, ok := e.layers[layer]
	return enc, ok
}

// Encode stores a matrix in an encoding: dense types narrow it, palettes are the exact optimum of k-means over every group of rows,
// the last of which may be smaller.
func Encode(ctx context.Context, m quant.Matrix, e quant.Encoding) (quant.Matrix, error) {
	switch e {
	case quant.DenseF32:
		return m, nil
	case quant.DenseF16:
		return quant.AsF16(m), nil
	case quant.DenseBF16:
		return quant.AsBF16(m), nil
	}
	o := quant.Options{Mode: quant.KMeans, Bits: e.Bits, Group: e.Group, Axis: e.Axis, Vector: e.Vector}
	rest := 0
	if e.Group > 0 && e.Axis == 0 {
		rest = m.Rows() % e.Group
	}
	if rest == 0 {
		return quant.Palettize(ctx, m, o, nil)
	}
	whole, last := o, o
	last.Group = 0
	var parts []quant.Matrix
	for _, p := range []struct {
		lo, hi int
		o      quant.Options
	}{{0, m.Rows() - rest, whole}, {m.Rows() - rest, m.Rows(), last}} {
		if p.lo == p.hi {
			continue
		}
		made, err := quant.Palettize(ctx, rowsOf{m, p.lo, p.hi}, p.o, nil)
		if err != nil {
			return nil, err
		}
		parts = append(parts, made)
	}
	return &stacked{parts, m.Rows()}, nil
}

// rowsOf is rows [lo, hi) of a matrix.
type rowsOf struct {
	quant.Matrix
	lo, hi int
}

func (m rowsOf) Rows() int                { return m.hi - m.lo }
func (m rowsOf) Bytes() int64             { return m.Matrix.Bytes() * int64(m.Rows()) / int64(m.Matrix.Rows()) }
func (m rowsOf) Row(dst []float32, r int) { m.Matrix.Row(dst, m.lo+r) }

func (m rowsOf) MulVec(y, x []float32) {
	all := make([]float32, m.Matrix.Rows())
	m.Matrix.MulVec(all, x)
	copy(y, all[m.lo:m.hi])
}

// stacked is matrices below each other.
type stacked struct {
	parts []quant.Matrix
	rows  int
}

func (m *stacked) Rows() int                { return m.rows }
func (m *stacked) Cols() int                { return m.parts[0].Cols() }
func (m *stacked) Encoding() quant.Encoding { return m.parts[0].Encoding() }

func (m *stacked) Bytes() int64 {
	var n int64
	for _, p := range m.parts {
		n += p.Bytes()
	}
	return n
}

func (m *stacked) Row(dst []float32, r int) {
	i := 0
	for r >= m.parts[i].Rows() {
		r -= m.parts[i].Rows()
		i++
	}
	m.parts[i].Row(dst, r)
}

func (m *stacked) MulVec(y, x []float32) {
	for _, p := range m.parts {
		p.MulVec(y[:p.Rows()], x)
		y = y[p.Rows():]
	}
}
