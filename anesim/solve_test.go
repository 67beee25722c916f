package anesim

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// hand: without the bound the optimum of (x−1)² + (y+1)² + (x+y−1)² is at (4/3, −2/3); on y = 0 it is x = 1.
func TestNonNegativeByHand(t *testing.T) {
	p := newProblem([]Prior{{Value: 1, SD: 1}, {Value: -1, SD: 1}})
	p.addAbsolute([]float64{1, 1}, 1, 1)
	require.InDeltaSlice(t, []float64{1, 0}, p.solve().value, 1e-12)
}

// invariant: at the optimum the slope is zero where an unknown is free and points outwards where it is bound.
func TestNonNegativeIsOptimal(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	bound := 0
	for range 200 {
		n := 1 + rng.IntN(7)
		priors := make([]Prior, n)
		for i := range priors {
			priors[i] = Prior{Value: rng.NormFloat64(), SD: math.Exp(rng.NormFloat64())}
		}
		p := newProblem(priors)
		for range rng.IntN(9) {
			x := make([]float64, n)
			for i := range x {
				x[i] = rng.NormFloat64()
			}
			p.addAbsolute(x, rng.NormFloat64(), math.Exp(rng.NormFloat64()))
		}
		z := p.nonNegative()
		for i := range z {
			slope := p.g[i]
			for j := range z {
				slope -= p.h.At(i, j) * z[j]
			}
			if z[i] > 0 {
				require.InDelta(t, 0, slope, 1e-6*(1+p.h.At(i, i)))
			} else {
				bound++
				require.Equal(t, 0.0, z[i])
				require.LessOrEqual(t, slope, 1e-8)
			}
		}
	}
	require.Greater(t, bound, 50, "the bound was hardly ever met")
}

// oracle: a session shift integrated out equals the shift as one more unknown with its prior.
func TestSessionShift(t *testing.T) {
	priors := []Prior{{Value: 2, SD: 1}, {Value: 0.5, SD: 0.25}}
	sessions := [][]observation{
		{{x: []float64{0.4, 0.3}, sd: 0.02}, {x: []float64{0.1, 1.4}, sd: 0.05}, {x: []float64{0.45, 0.2}, sd: 0.01}},
		{{x: []float64{0.3, 0.9}, sd: 0.03}},
	}
	const shiftSD = 0.04
	p := newProblem(priors)
	big := newProblem(append(priors, Prior{SD: shiftSD}, Prior{SD: shiftSD}))
	for i, s := range sessions {
		p.addSession(s, shiftSD)
		for _, o := range s {
			x := append(append([]float64{}, o.x...), 0, 0)
			x[len(priors)+i] = 1
			big.addAbsolute(x, 1, o.sd)
		}
	}
	free := []bool{true, true, true, true} // shifts have either sign
	z := big.solveFree(free)
	got := p.solve()
	want := []float64{z[0] * priors[0].SD, z[1] * priors[1].SD}
	require.InDeltaSlice(t, want, got.value, 1e-9)
	cov := big.solve().cov
	for i := range priors {
		for j := range priors {
			require.InDelta(t, cov.At(i, j), got.cov.At(i, j), 1e-12)
		}
	}
}

func TestQuantile(t *testing.T) { // hand: position q·(n−1)
	x := []float64{1, 2, 4, 8}
	require.Equal(t, 1.0, quantile(0, x))
	require.Equal(t, 3.0, quantile(0.5, x))
	require.InDelta(t, 6.8, quantile(0.9, x), 1e-12)
	require.Equal(t, 8.0, quantile(1, x))
	require.Equal(t, 5.0, quantile(0.9, []float64{5}))
}
