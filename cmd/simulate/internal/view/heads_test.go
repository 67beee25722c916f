package view

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/anesim"
	"anelab/attention"
	"anelab/chunking"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/trial"
	"anelab/gemma4"
	"anelab/internal/gemmatest"
	"anelab/quality"
)

// hand: layers 4 and 9 are full, 9 reads the rows of 4; one head of 9 is kept
func TestHeadsPage(t *testing.T) {
	m, err := chunking.NewModel(gemmatest.Config())
	require.NoError(t, err)
	report := &quality.HeadReport{Streaming: attention.Streaming{Sink: 4, Recent: 32}, Sequences: 2, AllFull: 1, NoneFull: 0.015,
		Heads: []quality.HeadFigures{{Layer: 4, Head: 0, Alone: 1, Only: 0.01, Mass: 0.0626}, {Layer: 9, Head: 3, Alone: 0.98, Only: 0.06, Mass: 0.97}},
		Kept:  []quality.Kept{{Heads: 0, Layer: -1, Head: -1, Far: 0.015, PPL: 4.1}, {Heads: 1, Layer: 9, Head: 3, Far: 0.995, PPL: 4.2}}}
	r := &Heads{Checkpoint: "tiny", Layers: m.Layers, Report: report, Policies: report.Suggest(m.Layers)}
	var b bytes.Buffer
	require.NoError(t, Write(&b, r, Text, console.Paint{}))
	for _, want := range []string{
		"recall at a distance: 100.0 % with every head full, 1.5 % with all streaming\n",
		"9.3                          98.0                    6.0              0.970\n",
		"              1  9.3        99.5  4.200\n",
		"4              4, 9     all   a head of layer 9 sees everything; heads that\n",
		"@4 attn=stream:4+32 @9 attn=duo:4+32:0001\n",
	} {
		require.Contains(t, b.String(), want)
	}
	require.Equal(t, [][]string{{"4", "0", "1", "0.01", "0.0626"}, {"9", "3", "0.98", "0.06", "0.97"}}, r.Records())
	report.Kept = report.Kept[:1]
	require.Equal(t, map[int]attention.Policy{}, report.Suggest(m.Layers), "not enough heads were tried")
	require.Equal(t, gemma4.Full, m.Layers[9].Kind)
}

// add appends a point of that rate and recall; its answers cost as many nats as they are right.
func (r *Frontier) add(rate, recall float64) {
	t := &trial.Trial{Text: "attn=full", Weights: quality.Stored, Mode: "f32"}
	t.Sums.Recall[0] = quality.Count{Right: int(100 * recall), Of: 100}
	t.Sums.AnswerNLL = 100 * recall
	r.Points = append(r.Points, FrontierPoint{t, anesim.Prediction{TokPerSec: rate}})
}

// hand: B is as good as A and slower; C is better and slower than A
func TestFrontierMarksWhatIsBeaten(t *testing.T) {
	r := &Frontier{By: "recall"}
	for _, x := range []struct{ rate, recall float64 }{{50, 0.5}, {49, 0.5}, {45, 0.9}, {45, 0.9}, {44, 0.95}} {
		r.add(x.rate, x.recall)
	}
	var beaten []int
	for i := range r.Points {
		beaten = append(beaten, r.beatenBy(i))
	}
	require.Equal(t, []int{-1, 0, -1, -1, -1}, beaten, "equals do not beat each other")
	r.By = "answer_nll" // the smaller, the better: recall of 0.95 stands for the greatest NLL here
	require.Equal(t, -1, r.beatenBy(0))
	require.Equal(t, 0, r.beatenBy(4))
}
