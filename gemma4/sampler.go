package gemma4

import "slices"

// Sampler chooses the tokens of one sequence. With the same settings, logits and seed it chooses the same tokens on every machine. Not
// safe for concurrent use.
type Sampler struct {
	s         Sampling
	random    seed
	seen      map[int]int // times a token was generated, 0 for one of the prompt
	logits    []float32   // [V] after penalties
	kept      []choice
	penalised bool
}

// choice is a token that may be chosen, with its probability times a constant.
type choice struct {
	id     int
	logit  float32
	weight float64
}

// NewSampler begins a sequence; it fails where [Sampling.Check] does.
func NewSampler(s Sampling) (*Sampler, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	repeats := s.Repetition != 0 && s.Repetition != 1
	return &Sampler{s: s, random: seed(s.Seed), seen: map[int]int{}, penalised: repeats || s.Frequency != 0 || s.Presence != 0}, nil
}

// Prompt makes tokens known that were not chosen here, for the repetition penalty.
func (s *Sampler) Prompt(tokens []int) {
	for _, id := range tokens {
		s.seen[id] += 0
	}
}

// Next chooses a token from logits [V] and remembers it. The logits are left as they are.
func (s *Sampler) Next(logits []float32) int {
	if s.penalised {
		logits = s.penalise(logits)
	}
	id := Argmax(logits)
	if s.s.Temperature > 0 && s.s.TopK != 1 {
		id = s.draw(logits, logits[id])
	}
	s.seen[id]++
	return id
}

// penalise returns the logits with penalties.
func (s *Sampler) penalise(logits []float32) []float32 {
	s.logits = append(s.logits[:0], logits...)
	repetition := float32(s.s.Repetition)
	for id, times := range s.seen {
		if id >= len(s.logits) {
			continue
		}
		v := &s.logits[id]
		switch {
		case repetition == 0 || repetition == 1:
		case *v > 0:
			*v /= repetition
		default:
			*v *= repetition
		}
		if times > 0 {
			*v -= float32(float64(s.s.Frequency*float64(times)) + s.s.Presence)
		}
	}
	return s.logits
}

// draw chooses by probability among those that the filters keep; best is the greatest logit.
func (s *Sampler) draw(logits []float32, best float32) int {
	s.kept = s.kept[:0]
	for id, v := range logits {
		s.kept = append(s.kept, choice{id: id, logit: v})
	}
	kept := s.kept
	if k := s.s.TopK; k > 0 && k < len(kept) { // needs no probabilities, so it comes before them
		kept = first(kept, func(n int, _ float64) bool { return n == k })
	}
	for i := range kept {
		// The difference first: a small temperature then makes weights of 0, not overflows. The best one's weight is 1.
		kept[i].weight = exponential((float64(kept[i].logit) - float64(best)) / s.s.Temperature)
	}
	if p := s.s.TopP; p < 1 {
		enough := float64(p * total(kept))
		kept = first(kept, func(_ int, sum float64) bool { return sum >= enough })
	}
	if least := s.s.MinP; least > 0 {
		kept = slices.DeleteFunc(kept, func(c choice) bool { return c.weight < least })
	}
	return pick(kept, s.random.float())
}

func total(all []choice) float64 {
	sum := 0.0
	for _, c := range all {
		sum += c.weight
	}
	return sum
}

// pick walks to where a share u of the whole weight is reached.
func pick(kept []choice, u float64) int {
	at, limit := 0.0, float64(u*total(kept))
	for _, c := range kept {
		if at += c.weight; at > limit {
			return c.id
		}
	}
	return kept[len(kept)-1].id
}

// first returns the likeliest in order, lower ids before higher ones of equal logits, until done says that n of them with weight sum are
// enough. A heap: of a quarter of a million candidates few are needed.
func first(all []choice, done func(n int, sum float64) bool) []choice {
	for i := len(all)/2 - 1; i >= 0; i-- {
		sink(all, i)
	}
	rest, sum := all, 0.0
	taken := make([]choice, 0, 64)
	for len(rest) > 0 {
		taken = append(taken, rest[0])
		if sum += rest[0].weight; done(len(taken), sum) {
			break
		}
		rest[0] = rest[len(rest)-1]
		rest = rest[:len(rest)-1]
		sink(rest, 0)
	}
	return taken
}

// before orders choices.
func (c choice) before(d choice) bool { return c.logit > d.logit || c.logit == d.logit && c.id < d.id }

// sink brings element i of a heap to its place.
func sink(heap []choice, i int) {
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if child+1 < len(heap) && heap[child+1].before(heap[child]) {
			child++
		}
		if !heap[child].before(heap[i]) {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}
