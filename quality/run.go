package quality

import (
	"context"
	"fmt"
	"math"

	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/format"
)

// Inputs are what a unit names by content.
type Inputs struct {
	Config     gemma4.Config
	Source     Source
	Checkpoint string // [Fingerprint] of config and source
	Set        *Set
	Threads    int // 0 = all cores; results do not depend on it
}

// Runner runs units of one checkpoint and one set. It keeps the models of the last unit, because parts of one measurement share
// them; results do not depend on that. Not safe for concurrent use.
type Runner struct {
	in        Inputs
	model     *gemma4.Model
	settings  string        // of model: the name of its unit over no sequences
	reference *gemma4.Model // the checkpoint as it is, in f32
}

// NewRunner returns a runner without models.
func NewRunner(in Inputs) *Runner { return &Runner{in: in} }

// Run is the sums of one unit: a function of the unit and of what it names.
func Run(ctx context.Context, u Unit, in Inputs) (Sums, error) { return NewRunner(in).Run(ctx, u) }

// Run is [Run] with the models of earlier units at hand.
func (r *Runner) Run(ctx context.Context, u Unit) (Sums, error) {
	if err := r.check(u); err != nil {
		return Sums{}, err
	}
	if err := r.load(ctx, u); err != nil {
		return Sums{}, err
	}
	var s Sums
	for i := u.First; i < u.First+u.Count; i++ {
		if err := r.sequence(ctx, u, i, &s); err != nil {
			return Sums{}, fmt.Errorf("sequence %d: %w", i, err)
		}
		s.Sequences++
	}
	return s, nil
}

// check refuses a unit that is about something else than the inputs.
func (r *Runner) check(u Unit) error {
	if err := u.check(); err != nil {
		return err
	}
	set := r.in.Set
	switch {
	case u.Checkpoint != r.in.Checkpoint:
		return &format.Error{Field: "unit", Got: "checkpoint " + u.Checkpoint, Want: r.in.Checkpoint, Fix: "give the checkpoint that the unit was made for"}
	case u.Set != set.Sum:
		return &format.Error{Field: "unit", Got: "set " + u.Set, Want: set.Sum, Fix: "give the evaluation file that the unit was made for"}
	case u.First+u.Count > len(set.Sequences):
		return &format.Error{Field: "unit", Got: fmt.Sprintf("sequences %d to %d", u.First, u.First+u.Count-1), Want: fmt.Sprintf("0 to %d", len(set.Sequences)-1)}
	case (u.has(Recall) || u.has(Passkey)) && len(set.Sequences[u.First].Questions) == 0:
		return &format.Error{Field: "tasks", Got: "recall or passkey with a set without questions", Want: "ppl or agreement", Fix: "give an evaluation file with query_pos"}
	case set.MaxToken() >= r.in.Config.VocabSize:
		return &format.Error{Field: "input_ids", Got: fmt.Sprintf("token %d", set.MaxToken()), Want: fmt.Sprintf("0 to %d", r.in.Config.VocabSize-1),
			Fix: "the evaluation file was made for another vocabulary"}
	}
	return nil
}

// load makes the models of a unit.
func (r *Runner) load(ctx context.Context, u Unit) error {
	settings := Unit{Mode: u.Mode, Attn: u.Attn, Weights: u.Weights, Tables: u.Tables, Head: u.Head}
	var err error
	if r.model == nil || r.settings != settings.Name() {
		if r.model, err = r.loadModel(ctx, settings); err != nil {
			return err
		}
		r.settings = settings.Name()
	}
	if u.has(Agreement) && r.reference == nil {
		r.reference, err = r.loadModel(ctx, Unit{Mode: "f32"})
	}
	return err
}

func (r *Runner) loadModel(ctx context.Context, u Unit) (*gemma4.Model, error) {
	policies, err := u.policies()
	if err != nil {
		return nil, err
	}
	src, err := reencode(ctx, r.in.Source, u)
	if err != nil {
		return nil, err
	}
	a, err := arith.New(u.Mode, r.in.Threads)
	if err != nil {
		return nil, err
	}
	return gemma4.Load(r.in.Config, src, a, gemma4.Options{Policies: policies})
}

// comparedTokens is how many tokens two models go through before they are compared: their logits are held together.
const comparedTokens = 32

// sequence counts one sequence.
func (r *Runner) sequence(ctx context.Context, u Unit, i int, s *Sums) error {
	q := &r.in.Set.Sequences[i]
	if u.has(Passkey) {
		if err := r.passkeys(ctx, i, s); err != nil {
			return err
		}
	}
	if !u.has(Recall) && !u.has(PPL) && !u.has(Agreement) {
		return nil
	}
	state, err := r.model.NewState(len(q.Tokens))
	if err != nil {
		return err
	}
	t := newTally(u, r.in.Set, q, s)
	if !u.has(Agreement) {
		return state.Score(ctx, q.Tokens, t.row)
	}
	full, err := r.reference.NewState(len(q.Tokens))
	if err != nil {
		return err
	}
	v := r.in.Config.VocabSize
	t.full = make([]float32, comparedTokens*v)
	for at := 0; at < len(q.Tokens); at += comparedTokens {
		part := q.Tokens[at:min(at+comparedTokens, len(q.Tokens))]
		keep := func(row int, logits []float32) error { copy(t.full[row*v:], logits); return nil }
		if err := full.Score(ctx, part, keep); err != nil {
			return err
		}
		t.at = at
		if err := state.Score(ctx, part, t.row); err != nil {
			return err
		}
	}
	return nil
}

// tally counts the rows of one sequence.
type tally struct {
	unit  Unit
	set   *Set
	seq   *Sequence
	sums  *Sums
	asked map[int]Question
	topic map[int]bool
	at    int       // position of row 0
	full  []float32 // [comparedTokens, V] logits of the full model; nil when nobody compares
}

func newTally(u Unit, set *Set, q *Sequence, s *Sums) *tally {
	t := &tally{unit: u, set: set, seq: q, sums: s, asked: map[int]Question{}, topic: map[int]bool{}}
	if u.has(Recall) {
		for _, x := range q.Questions {
			t.asked[x.At] = x
		}
		for _, p := range q.Topics {
			t.topic[p] = true
		}
	}
	return t
}

// row counts the logits that follow a position.
func (t *tally) row(row int, logits []float32) error {
	p := t.at + row
	best, norm := gemma4.Argmax(logits), logSumExp(logits)
	nll := func(id int) float64 { return norm - float64(logits[id]) }
	if q, ok := t.asked[p]; ok {
		t.sums.Recall[bucketOf(q.Distance)].add(best == q.Answer)
		t.sums.AnswerNLL += nll(q.Answer)
	}
	if t.topic[p] {
		t.sums.Topic.add(best == t.seq.Tokens[1])
	}
	if t.unit.has(PPL) && p+1 < len(t.seq.Tokens) {
		if next := t.seq.Tokens[p+1]; next >= t.set.ScoreFrom {
			t.sums.Target.add(best == next)
			t.sums.TargetNLL += nll(next)
		}
	}
	if t.full != nil {
		full := t.full[row*len(logits) : (row+1)*len(logits)]
		t.sums.Agree.add(best == gemma4.Argmax(full))
		t.sums.KL += divergence(full, logits, logSumExp(full), norm)
	}
	return nil
}

// logSumExp is ln Σ exp(x), in float64.
func logSumExp(x []float32) float64 {
	most := float64(x[gemma4.Argmax(x)])
	var sum float64
	for _, v := range x {
		sum += math.Exp(float64(v) - most)
	}
	return most + math.Log(sum)
}

// divergence is KL(p ‖ q) of the distributions that logits x and y stand for, given their normalisers; never below 0.
func divergence(x, y []float32, normX, normY float64) float64 {
	var kl float64
	for i, v := range x {
		lp := float64(v) - normX
		kl += math.Exp(lp) * (lp - (float64(y[i]) - normY))
	}
	return max(kl, 0)
}
