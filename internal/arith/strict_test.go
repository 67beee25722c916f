package arith

import (
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/swa"
)

func TestStrictRoundsEveryStep(t *testing.T) { // hand: beside 2048 a fp16 has no half units: 2048 + 1 is 2048, three times over
	a := mode(t, "strict")
	require.Equal(t, "strict", a.Name())
	y := make([]float32, 2)
	a.Linear(y, matrix(t, []float32{2048, 1, 1, 1, 1, 1, 1, 2048}, 2, 4), []float32{1, 1, 1, 1}, 1)
	require.Equal(t, []float32{2048, 2052}, y, "3 + 2048 is 2051, a tie that goes to 2052")
	mode(t, "ane").Linear(y, matrix(t, []float32{2048, 1, 1, 1, 1, 1, 1, 2048}, 2, 4), []float32{1, 1, 1, 1}, 1)
	require.Equal(t, []float32{2052, 2052}, y)
	require.Equal(t, float32(2048), a.Sum([]float32{2048, 1, 1}))
	// the product rounds too: 1.0009765625² is 1.001954 (exact: 1.00195407867), of which fp16 keeps 1.001953125
	a.Linear(y[:1], matrix(t, []float32{1.0009765625}, 1, 1), []float32{1.0009765625}, 1)
	require.Equal(t, float32(1.001953125), y[0])
}

func TestStrictAttention(t *testing.T) { // hand: rows [2048, 1], [1, 1], [1, 1] with weights one
	a := mode(t, "strict")
	store := swa.NewLinear(swa.Shape{KVHeads: 1, HeadDim: 2, Elem: a.KV()}, 3)
	rows := []float32{2048, 1, 1, 1, 1, 1}
	store.Stage(0, rows, rows)
	spans, o, s := []swa.Span{{Lo: 0, Hi: 3}}, make([]float32, 2), make([]float32, 3)
	a.Mix(o, []float32{1, 1, 1}, store.Values(), spans)
	require.Equal(t, []float32{2048, 3}, o)
	a.Scores(s, []float32{1, 1}, store.Keys(), spans)
	require.Equal(t, []float32{2048, 2, 2}, s)
	p := []float32{0, 0, 0, 0}
	a.Softmax(p, nil)
	require.Equal(t, []float32{0.25, 0.25, 0.25, 0.25}, p)
}
