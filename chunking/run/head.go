package run

import (
	"fmt"

	"anelab/gemma4"
	"anelab/internal/format"
)

// head turns the stream into tokens: final norm, tied LM head, soft-cap, first maximum. hidden_states_out of a decode call is the
// normed row, of a verify call the stream as it is (spec forward.md §4.2, §4.10); a prefill call has one token, behind its last
// real row.
func (k *call) head(trace gemma4.Tracer) error {
	m, d := k.e.model, k.e.model.Config.HiddenSize
	normed := make([]float32, len(k.pass.X))
	m.FinalNorm(normed, k.pass.X)
	if k.Function.Kind == Prefill {
		row, err := k.lastRow()
		if err != nil {
			return err
		}
		normed = normed[row*d : (row+1)*d]
	}
	rows := len(normed) / d
	pre, capped := make([]float32, rows*m.Config.VocabSize), make([]float32, rows*m.Config.VocabSize)
	m.Logits(capped, pre, normed)
	for _, v := range capped {
		if v-v != 0 {
			return gemma4.ErrNotFinite
		}
	}
	k.choose(normed, capped)
	if trace != nil {
		trace(gemma4.Tap{Point: gemma4.PointFinalNorm, Layer: -1, First: k.Pos, Shape: []int{rows, d}, Data: normed})
		trace(gemma4.Tap{Point: gemma4.PointLogitsPre, Layer: -1, First: k.Pos, Shape: []int{rows, m.Config.VocabSize}, Data: pre})
		trace(gemma4.Tap{Point: gemma4.PointLogits, Layer: -1, First: k.Pos, Shape: []int{rows, m.Config.VocabSize}, Data: capped})
	}
	return nil
}

// choose fills the token ports from soft-capped logits [rows, V].
func (k *call) choose(normed, capped []float32) {
	vocab := k.e.model.Config.VocabSize
	if ids := k.out["token_ids"]; ids != nil {
		for t := range ids.IDs {
			ids.IDs[t] = int32(gemma4.Argmax(capped[t*vocab : (t+1)*vocab]))
		}
		return
	}
	best := gemma4.Argmax(capped)
	k.out["token_id"].IDs[0] = int32(best)
	k.out["token_logit"].Data[0] = capped[best]
	if out := k.out["hidden_states_out"]; out != nil {
		copy(out.Data, normed)
	}
}

// lastRow is the row that last_position_mask marks.
func (k *call) lastRow() (int, error) {
	row, ones := 0, 0
	for i, v := range k.In["last_position_mask"].Data {
		switch v {
		case 0:
		case 1:
			row, ones = i, ones+1
		default:
			return 0, &format.Error{Field: "last_position_mask", Got: fmt.Sprint(v), Want: "a single 1 and zeros"}
		}
	}
	if ones != 1 {
		return 0, &format.Error{Field: "last_position_mask", Got: fmt.Sprintf("%d marked rows", ones), Want: "a single 1 and zeros"}
	}
	return row, nil
}
