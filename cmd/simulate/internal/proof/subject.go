package proof

import (
	"fmt"

	"anelab/chunking"
	"anelab/gemma4"
	"anelab/internal/checkpoint"
	"anelab/parity"
	"anelab/parity/golden"
)

// Subject is what is put to the proof.
type Subject struct {
	Checkpoint *checkpoint.Checkpoint
	Layout     chunking.Layout
	Mode       string
	Goldens    []*golden.File // compared with
	Prompts    []*golden.File // only their prompts are used
	Tokens     int            // length of a made-up prompt; 0 = a default
}

// load reads the weights in a mode.
func (s *Subject) load(mode string) (*gemma4.Model, error) {
	a, err := s.Checkpoint.Arithmetic(mode, 0)
	if err != nil {
		return nil, err
	}
	return gemma4.Load(s.Checkpoint.Config, s.Checkpoint, a, gemma4.Options{})
}

// job is one case with the golden it comes from, if any.
type job struct {
	parity.Case
	golden   *golden.Case
	file     *golden.File
	imported bool // the prompt is prefilled by the whole model
}

// longPrompt is the length from which a prompt is imported instead of run through the chunks token by token: every token is
// a call of every chunk, and copies every cache.
const longPrompt = 64

// jobs are the cases of the goldens, else of the prompts, else one made up.
func (s *Subject) jobs() []job {
	var all []job
	for _, f := range s.Goldens {
		for _, c := range f.Cases() {
			all = append(all, newJob(c.ParityCase(), c, f))
		}
	}
	for _, f := range s.Prompts {
		for _, c := range f.Cases() {
			if len(all) == 0 || all[len(all)-1].golden == nil {
				all = append(all, newJob(c.ParityCase(), nil, nil))
			}
		}
	}
	if len(all) == 0 {
		all = append(all, newJob(madeUp(s.Tokens, s.Checkpoint.Config.VocabSize), nil, nil))
	}
	return all
}

func newJob(c parity.Case, from *golden.Case, file *golden.File) job {
	j := job{Case: c, golden: from, file: file, imported: len(c.Prompt) > longPrompt}
	if !j.imported {
		j.Batch = 1
	}
	return j
}

// A prompt that is made up: past the wrap of a small window, not so long that real dimensions take minutes.
const (
	madeUpTokens = 24
	madeUpFollow = 5
)

// madeUp is a prompt of tokens that are far apart, the same in every run; n = 0 takes a default.
func madeUp(n, vocabulary int) parity.Case {
	if n == 0 {
		n = madeUpTokens
	}
	ids := make([]int, n+madeUpFollow)
	for i := range ids {
		ids[i] = (i*7919 + 13) % vocabulary
	}
	return parity.Case{Name: fmt.Sprintf("T%d", n), Prompt: ids[:n], Follow: ids[n:]}
}

// plan compiles the layout for the longest case, unless it says more itself.
func (s *Subject) plan(jobs []job) (*chunking.Plan, error) {
	m, err := chunking.NewModel(s.Checkpoint.Config)
	if err != nil {
		return nil, err
	}
	l := s.Layout
	l.Context = max(l.Context, longest(jobs))
	return l.Plan(m)
}

// Context is how many positions the longest case takes.
func (s *Subject) Context() int { return longest(s.jobs()) }

func longest(jobs []job) int {
	n := 0
	for _, j := range jobs {
		n = max(n, j.Context())
	}
	return n
}
