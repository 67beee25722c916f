package proof

import (
	"context"
	"fmt"
	"math"

	"anelab/gemma4"
	"anelab/internal/checkpoint"
	"anelab/internal/checkpoint/converted"
	"anelab/internal/half"
	"anelab/quant"
)

// Weights is what the weights of one chain of packages have in common with the checkpoint's, which are rounded to fp16 first.
type Weights struct {
	Packages int
	Dense    int // stored as they are: they must be equal
	Others   int // palettes and other encodings: they must be near
	Wrong    int
	First    *WrongWeight
	Worst    string  // of those in other encodings
	WorstRMS float64 // its relative RMS
}

// WrongWeight is a weight that is not the checkpoint's.
type WrongWeight struct {
	Name, Package, Stored string
	Err                   error
}

// OK reports whether every weight is the checkpoint's.
func (w *Weights) OK() bool { return w.Wrong == 0 && w.Dense+w.Others > 0 }

// Compressed reports whether some weight is in another encoding.
func (w *Weights) Compressed() bool { return w.Others > 0 }

// worstEncoding is beyond what the coarsest palettes do to weights (two bits: 34 % for Gaussian ones, 55 % for heavy tails; spec
// coreml.md §5), and below what weights of another layer, or in another order, show (141 %).
const worstEncoding = 0.7

// compareWeights holds every weight of the packages against the checkpoint.
func compareWeights(ctx context.Context, src *converted.Source, base *checkpoint.Checkpoint) (*Weights, error) {
	w := &Weights{Packages: len(src.Chunks)}
	for _, name := range src.Weights() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		at, _ := src.Stored(name)
		got, want, err := pairOf(src, base, name)
		if err != nil {
			return nil, err
		}
		w.judge(name, at, apart(got, want))
	}
	return w, nil
}

// judge files the difference of one weight.
func (w *Weights) judge(name string, at converted.Stored, d distance) {
	var err error
	if at.Compressed() {
		if w.Others++; d.relRMS() > w.WorstRMS {
			w.Worst, w.WorstRMS = name, d.relRMS()
		}
		if !(d.relRMS() <= worstEncoding) {
			err = fmt.Errorf("relative rms %.3g, at most %.2g can be the encoding's doing", d.relRMS(), worstEncoding)
		}
	} else {
		w.Dense++
		err = d.err()
	}
	if err == nil {
		return
	}
	if w.Wrong++; w.First == nil {
		w.First = &WrongWeight{Name: name, Package: at.Package, Stored: at.Name, Err: err}
	}
}

// pairOf is a weight of the packages and the checkpoint's, as fp16 and with the scale that a converter may have folded in.
func pairOf(src *converted.Source, base *checkpoint.Checkpoint, name string) (got, want quant.Matrix, err error) {
	from := name
	if name == converted.Head {
		from = "embed_tokens.weight"
	}
	if got, err = matrixOf(src, name); err != nil {
		return nil, nil, err
	}
	if want, err = matrixOf(base, from); err != nil {
		return nil, nil, err
	}
	if want = quant.AsF16(want); name == converted.ModelProjection && bool(src.Choices.Folded) {
		want = quant.ScaledF16(want, half.RoundF16(float32(1/math.Sqrt(float64(src.Config.HiddenSize)))))
	}
	return got, want, nil
}

// matrixOf is a weight, or a gain as a matrix of one row.
func matrixOf(src gemma4.MatrixSource, name string) (quant.Matrix, error) {
	m, err := src.Matrix(name)
	if err == nil {
		return m, nil
	}
	t, vector := src.Tensor(name)
	if vector != nil || len(t.Shape) != 1 {
		return nil, err
	}
	t.Shape = []int{1, t.Shape[0]}
	return quant.Dense(t)
}

// distance is how far two matrices are from each other.
type distance struct {
	elements, unequal  int
	first              string // element that differs
	difference, square float64
}

func (d distance) relRMS() float64 { return math.Sqrt(d.difference / d.square) }

func (d distance) err() error {
	if d.unequal == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d elements differ, relative rms %.3g; first %s", d.unequal, d.elements, d.relRMS(), d.first)
}

// apart compares two matrices row by row. Those of other shapes are infinitely far apart.
func apart(got, want quant.Matrix) distance {
	d := distance{elements: want.Rows() * want.Cols()}
	if got.Rows() != want.Rows() || got.Cols() != want.Cols() {
		d.unequal, d.difference, d.first = d.elements, math.Inf(1), fmt.Sprintf("shape [%d, %d], want [%d, %d]", got.Rows(), got.Cols(), want.Rows(), want.Cols())
		return d
	}
	x, y := make([]float32, got.Cols()), make([]float32, got.Cols())
	for r := range got.Rows() {
		got.Row(x, r)
		want.Row(y, r)
		for i, v := range y {
			off := float64(x[i]) - float64(v)
			d.difference += off * off
			d.square += float64(v) * float64(v)
			if x[i] == v {
				continue
			}
			if d.unequal++; d.first == "" {
				d.first = fmt.Sprintf("[%d %d]: got %v, want %v", r, i, x[i], v)
			}
		}
	}
	return d
}
