package anesim

import (
	"gonum.org/v1/gonum/mat"
)

// problem is a linear least squares problem with non-negative unknowns in normal form: minimise θᵀHθ − 2gᵀθ. Unknowns are
// counted in units of their prior's standard deviation, so H is well scaled although constants span twelve decades.
type problem struct {
	units []float64 // [n] unit of each unknown
	h     *mat.SymDense
	g     []float64 // [n]
}

// newProblem starts from independent Gaussian priors.
func newProblem(priors []Prior) *problem {
	n := len(priors)
	p := &problem{units: make([]float64, n), h: mat.NewSymDense(n, nil), g: make([]float64, n)}
	for i, prior := range priors {
		p.units[i] = prior.SD
		p.h.SetSym(i, i, 1)
		p.g[i] = prior.Value / prior.SD
	}
	return p
}

// observation is one equation x·θ = 1 ± sd: a measured time with both sides divided by it.
type observation struct {
	x  []float64 // [n] quantities over the measured time
	sd float64   // relative
}

// addSession adds equations that share an unknown shift u ~ N(0, sd²): x·θ + u = 1. With u integrated out their covariance
// is D + sd²·11ᵀ, whose inverse is D⁻¹ − D⁻¹11ᵀD⁻¹/(1/sd² + Σ1/d) (Sherman, Morrison). The factor on the session's times is
// 1/(1−u).
func (p *problem) addSession(obs []observation, sd float64) {
	n := len(p.units)
	v, total := make([]float64, n), 0.0
	for _, o := range obs {
		w := 1 / (o.sd * o.sd)
		total += w
		for i := range n {
			xi := o.x[i] * p.units[i]
			v[i] += w * xi
			p.g[i] += w * xi
			for j := i; j < n; j++ {
				p.h.SetSym(i, j, p.h.At(i, j)+w*xi*o.x[j]*p.units[j])
			}
		}
	}
	k := 1 / (1/(sd*sd) + total)
	for i := range n {
		p.g[i] -= k * v[i] * total
		for j := i; j < n; j++ {
			p.h.SetSym(i, j, p.h.At(i, j)-k*v[i]*v[j])
		}
	}
}

// addAbsolute adds one equation x·θ = y ± sd.
func (p *problem) addAbsolute(x []float64, y, sd float64) {
	w := 1 / (sd * sd)
	for i := range p.units {
		xi := x[i] * p.units[i]
		p.g[i] += w * xi * y
		for j := i; j < len(p.units); j++ {
			p.h.SetSym(i, j, p.h.At(i, j)+w*xi*x[j]*p.units[j])
		}
	}
}

// solution of a problem. The covariance is that of the unconstrained problem: a constant that ends at zero keeps its spread.
type solution struct {
	value []float64     // [n]
	cov   *mat.SymDense // [n, n]
}

// Priors keep the matrix positive definite whatever the rows are, so a failure here is ours.
func (p *problem) solve() solution {
	z := p.nonNegative()
	var chol mat.Cholesky
	if !chol.Factorize(p.h) {
		panic("anesim: normal equations are not positive definite")
	}
	cov := mat.NewSymDense(len(z), nil)
	if err := chol.InverseTo(cov); err != nil {
		panic("anesim: normal equations are singular")
	}
	for i := range z {
		z[i] *= p.units[i]
		for j := i; j < len(z); j++ {
			cov.SetSym(i, j, cov.At(i, j)*p.units[i]*p.units[j])
		}
	}
	return solution{value: z, cov: cov}
}

// nonNegative is the active set method of Lawson and Hanson (Solving Least Squares Problems, ch. 23) on normal equations.
func (p *problem) nonNegative() []float64 {
	n := len(p.units)
	z, free := make([]float64, n), make([]bool, n)
	for range 3 * n { // each pass frees one unknown; more passes than this would be a cycle
		j := p.steepest(z, free)
		if j < 0 {
			break
		}
		free[j] = true
		for {
			s := p.solveFree(free)
			if step := feasibleStep(z, s, free); step < 1 {
				for i := range z {
					z[i] += step * (s[i] - z[i])
					if free[i] && z[i] <= tiny {
						z[i], free[i] = 0, false
					}
				}
				continue
			}
			copy(z, s)
			break
		}
	}
	return z
}

// tiny is zero for numbers that are counted in prior standard deviations.
const tiny = 1e-12

// steepest is the bound unknown whose growth lowers the sum of squares most; −1 at the optimum.
func (p *problem) steepest(z []float64, free []bool) int {
	best, slope := -1, 1e-9
	for i := range z {
		if free[i] {
			continue
		}
		w := p.g[i]
		for j := range z {
			w -= p.h.At(i, j) * z[j]
		}
		if w > slope {
			best, slope = i, w
		}
	}
	return best
}

// feasibleStep is how far one can go from z to s before a free unknown becomes negative.
func feasibleStep(z, s []float64, free []bool) float64 {
	step := 1.0
	for i := range z {
		if free[i] && s[i] <= 0 && z[i] > s[i] {
			step = min(step, z[i]/(z[i]-s[i]))
		}
	}
	return step
}

// solveFree solves for the free unknowns with the others at zero.
func (p *problem) solveFree(free []bool) []float64 {
	var idx []int
	for i, f := range free {
		if f {
			idx = append(idx, i)
		}
	}
	h, g := mat.NewSymDense(len(idx), nil), mat.NewVecDense(len(idx), nil)
	for a, i := range idx {
		g.SetVec(a, p.g[i])
		for b := a; b < len(idx); b++ {
			h.SetSym(a, b, p.h.At(i, idx[b]))
		}
	}
	var chol mat.Cholesky
	var x mat.VecDense
	if !chol.Factorize(h) || chol.SolveVecTo(&x, g) != nil {
		panic("anesim: normal equations are not positive definite")
	}
	s := make([]float64, len(free))
	for a, i := range idx {
		s[i] = x.AtVec(a)
	}
	return s
}
