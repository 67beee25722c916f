package speculate

import (
	"context"

	"anelab/gemma4"
)

// Exit is how often the head behind the first layers alone chose the token that the whole model chose.
type Exit struct {
	Layers int `json:"layers"`
	Match  int `json:"match"`
	Of     int `json:"of"`
}

// Exits probes a model for LayerSkip (Elhoushi et al., 2024), which drafts with its own first layers: at each of n decode steps behind
// the prompt, the stream behind every layer goes through the final norm and the head. A model that was not trained for it
// matches rarely before its last layers; the upstream probe saw none of 60.
func Exits(ctx context.Context, m *gemma4.Model, prompt []int, n int) ([]Exit, error) {
	s, err := m.NewState(len(prompt) + n)
	if err != nil {
		return nil, err
	}
	p := &probe{model: m, exits: make([]Exit, len(m.Layers)), choice: make([]int, len(m.Layers))}
	logits, err := s.Prefill(ctx, prompt)
	if err != nil {
		return nil, err
	}
	s.Listen(p.tap)
	for range n {
		if logits, err = s.Step(ctx, gemma4.Argmax(logits)); err != nil {
			return nil, err
		}
		p.judge(gemma4.Argmax(logits))
	}
	return p.exits, nil
}

// probe takes the stream behind every layer of a step.
type probe struct {
	model               *gemma4.Model
	exits               []Exit
	choice              []int // of each layer in the step at hand
	normed, pre, logits []float32
}

func (p *probe) tap(t gemma4.Tap) {
	if t.Point != gemma4.PointHidden {
		return
	}
	c := &p.model.Config
	if p.normed == nil {
		p.normed, p.pre, p.logits = make([]float32, c.HiddenSize), make([]float32, c.VocabSize), make([]float32, c.VocabSize)
	}
	p.model.FinalNorm(p.normed, t.Data[len(t.Data)-c.HiddenSize:])
	p.model.Logits(p.logits, p.pre, p.normed)
	p.choice[t.Layer] = gemma4.Argmax(p.logits)
}

// judge compares the choices of a step with the model's own.
func (p *probe) judge(token int) {
	for l := range p.exits {
		e := &p.exits[l]
		e.Layers, e.Of = l+1, e.Of+1
		if p.choice[l] == token {
			e.Match++
		}
	}
}
