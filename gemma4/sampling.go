package gemma4

import (
	"fmt"
	"math"

	"anelab/internal/format"
)

// Sampling says how a token is chosen from logits. Filters apply in this order: penalties, temperature, TopK, TopP, MinP. The zero
// value is the greedy choice.
type Sampling struct {
	Temperature float64 // 0 = greedy
	TopK        int     // keep the K likeliest; 0 = off
	TopP        float64 // then the likeliest that together have probability P; 1 = off, 0 = the best alone
	MinP        float64 // then those with at least that share of the best one's probability; 0 = off
	Repetition  float64 // divides positive logits of tokens seen before and multiplies negative ones; 0 and 1 = off
	Frequency   float64 // is taken off a logit for each time the token was generated
	Presence    float64 // is taken off once
	Seed        uint64
}

// Greedy is the choice of the likeliest token, the lowest id of equals.
func Greedy() Sampling { return Sampling{TopP: 1, Repetition: 1} }

// Check refuses values that have no meaning, by the name of the field.
func (s Sampling) Check() error {
	for _, f := range []struct {
		name   string
		value  float64
		lo, hi float64
	}{
		{"temperature", s.Temperature, 0, math.MaxFloat64}, {"top_k", float64(s.TopK), 0, math.MaxInt32}, {"top_p", s.TopP, 0, 1}, {"min_p", s.MinP, 0, 1},
		{"repetition_penalty", s.Repetition, 0, math.MaxFloat64}, {"frequency_penalty", s.Frequency, -100, 100}, {"presence_penalty", s.Presence, -100, 100},
	} {
		if !(f.value >= f.lo && f.value <= f.hi) { // NaN is neither
			want := fmt.Sprintf("%g to %g", f.lo, f.hi)
			if f.hi > 100 {
				want = fmt.Sprintf("a number of at least %g", f.lo)
			}
			return &format.Error{Field: f.name, Got: fmt.Sprint(f.value), Want: want}
		}
	}
	return nil
}

// seed is a stream of random numbers that is the same on every machine: splitmix64.
type seed uint64

func (s *seed) next() uint64 {
	*s += 0x9E3779B97F4A7C15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// float is a number in [0, 1) with 53 random bits.
func (s *seed) float() float64 { return float64(s.next()>>11) * 0x1p-53 }

// reciprocals are 1/k!, the coefficients of the exponential series.
var reciprocals = func() (c [14]float64) {
	c[0] = 1
	for k := 1; k < len(c); k++ {
		c[k] = c[k-1] / float64(k)
	}
	return c
}()

// exponential is eˣ for x ≤ 0 with the same bits everywhere: math.Exp is written in assembly on some machines and fuses operations on
// others. x = n·ln 2 + r, |r| ≤ ln 2/2; the series in r stops below half an ulp.
func exponential(x float64) float64 {
	const ln2Hi, ln2Lo = 6.93147180369123816490e-01, 1.90821492927058770002e-10
	if x < -745 {
		return 0
	}
	n := math.Floor(float64(x*(1/math.Ln2)) + 0.5)
	r := x - float64(n*ln2Hi)
	r -= float64(n * ln2Lo)
	sum := 0.0
	for k := len(reciprocals) - 1; k >= 0; k-- {
		sum = float64(sum*r) + reciprocals[k]
	}
	return math.Ldexp(sum, int(n))
}
