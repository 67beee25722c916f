package speculate

import (
	"context"
	"fmt"

	"anelab/internal/format"
)

// Run is what [Decode] made.
type Run struct {
	Tokens  []int
	Profile Profile
}

// Profile counts what became of drafts, by position: index 0 is the draft behind the current token.
type Profile struct {
	Calls    int   `json:"calls"`    // of the model behind the prompt, each of which yields a token of its own
	Verifies int   `json:"verifies"` // calls that had drafts
	Reached  []int `json:"reached"`  // calls in which a draft at the position could have been accepted: room for it, and all before it were
	Proposed []int `json:"proposed"` // of those, calls in which there was one
	Accepted []int `json:"accepted"`
}

// Add sums profiles of the same number of drafts.
func (p *Profile) Add(o Profile) {
	if p.Reached == nil {
		*p = newProfile(len(o.Reached))
	}
	p.Calls, p.Verifies = p.Calls+o.Calls, p.Verifies+o.Verifies
	for i := range o.Reached {
		p.Reached[i] += o.Reached[i]
		p.Proposed[i] += o.Proposed[i]
		p.Accepted[i] += o.Accepted[i]
	}
}

func newProfile(drafts int) Profile {
	return Profile{Reached: make([]int, drafts), Proposed: make([]int, drafts), Accepted: make([]int, drafts)}
}

// Acceptance is, by position, the share of calls that accepted a draft there among those that could have: what the cost model
// asks for. Calls in which nothing was proposed count as refusals, because they were paid for.
func (p *Profile) Acceptance() []float64 {
	all := make([]float64, len(p.Reached))
	for i, n := range p.Reached {
		if n > 0 {
			all[i] = float64(p.Accepted[i]) / float64(n)
		}
	}
	return all
}

// TokensPerCall is how many tokens a call yielded.
func (p *Profile) TokensPerCall() float64 {
	if p.Calls == 0 {
		return 0
	}
	tokens := p.Calls
	for _, n := range p.Accepted {
		tokens += n
	}
	return float64(tokens) / float64(p.Calls)
}

// Length is how far [Decode] goes, and in which steps.
type Length struct {
	Tokens int // to decode; the first follows from the prompt alone
	Drafts int // per call, at most; 0 is plain decoding
}

// Decode continues a prompt by greedy choice.
func Decode(ctx context.Context, t Target, d Drafter, prompt []int, n Length) (Run, error) {
	if n.Tokens < 1 || n.Drafts < 0 {
		return Run{}, &format.Error{Field: "decode", Got: fmt.Sprintf("%d tokens with %d drafts", n.Tokens, n.Drafts), Want: "at least 1 token and 0 drafts"}
	}
	current, err := t.Start(ctx, prompt)
	if err != nil {
		return Run{}, err
	}
	d.See(prompt...)
	out := Run{Tokens: []int{current}, Profile: newProfile(n.Drafts)}
	for len(out.Tokens) < n.Tokens {
		d.See(current)
		accepted, err := out.Profile.call(ctx, t, d, current, min(n.Drafts, n.Tokens-len(out.Tokens)-1, t.Room()-1))
		if err != nil {
			return Run{}, err
		}
		d.See(accepted[:len(accepted)-1]...)
		out.Tokens = append(out.Tokens, accepted...)
		current = accepted[len(accepted)-1]
	}
	return out, nil
}

// call is one call of the model: the accepted drafts and the token that follows them.
func (p *Profile) call(ctx context.Context, t Target, d Drafter, current, most int) ([]int, error) {
	p.Calls++
	var drafts []int
	if most > 0 {
		drafts = d.Draft(most)
	}
	if len(drafts) == 0 {
		if most > 0 {
			p.Reached[0]++
		}
		next, err := t.Step(ctx, current)
		return []int{next}, err
	}
	p.Verifies++
	next, err := t.Verify(ctx, append([]int{current}, drafts...))
	if err != nil {
		return nil, err
	}
	right := 0
	for right < len(drafts) && next[right] == drafts[right] {
		right++
	}
	p.count(right, len(drafts), most)
	return next[:right+1], t.Accept(right + 1)
}

// count files a call with room for most drafts, of which so many were proposed and the first right ones accepted.
func (p *Profile) count(right, proposed, most int) {
	for i := range min(right+1, most) {
		p.Reached[i]++
		if i < proposed {
			p.Proposed[i]++
		}
		if i < right {
			p.Accepted[i]++
		}
	}
}
