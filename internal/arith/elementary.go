package arith

import "math"

// Elementary functions in float64, error below 1e-15 relative, the same bits on every architecture: every product is converted
// before it is added, so that no compiler fuses it.

const (
	ln2Hi  = 0x1.62e42fee00000p-1 // ln 2 = ln2Hi + ln2Lo; 32 bits, so that k·ln2Hi is exact
	ln2Lo  = 0x1.a39ef35793c76p-33
	invLn2 = 0x1.71547652b82fep+0

	halfPi1  = 0x1.921fb54400000p+0 // π/2 = halfPi1 + halfPi2 + halfPi3; 33 bits each
	halfPi2  = 0x1.0b4611a600000p-34
	halfPi3  = 0x1.3198a2e037073p-69
	invHalfP = 0x1.45f306dc9c883p-1
)

// Taylor coefficients, computed once by exact division.
var expTerms, sinTerms, cosTerms = taylor()

// taylor returns 1/n! for n = 0…14, the odd ones with alternating sign (sin) and the even ones with alternating sign (cos).
func taylor() (exp [15]float64, sin, cos [10]float64) {
	factorial := 1.0
	sign := [4]float64{1, 1, -1, -1}
	for n := range 20 {
		if n > 0 {
			factorial *= float64(n) // exact below 2^53 up to 18!, correctly rounded above
		}
		if n < len(exp) {
			exp[n] = 1 / factorial
		}
		if n%2 == 0 {
			cos[n/2] = sign[n%4] / factorial
		} else {
			sin[n/2] = sign[n%4] / factorial
		}
	}
	return exp, sin, cos
}

// horner evaluates Σ c[n]·xⁿ.
func horner(c []float64, x float64) float64 {
	s := c[len(c)-1]
	for n := len(c) - 2; n >= 0; n-- {
		s = float64(s*x) + c[n]
	}
	return s
}

// Exp64 is eˣ: x = k·ln2 + r with |r| ≤ ½·ln2, Taylor series of r, scaled by 2ᵏ.
func Exp64(x float64) float64 {
	switch {
	case x != x || x > 709.7:
		return math.Exp(x) // overflow and NaN: no rounding to pin
	case x < -745.2:
		return 0
	}
	k := math.RoundToEven(x * invLn2)
	r := float64(x-float64(k*ln2Hi)) - float64(k*ln2Lo)
	return math.Ldexp(horner(expTerms[:], r), int(k))
}

// Log64 is ln x for finite positive x: a guess good to a few percent, then Newton steps y += 2(x − eʸ)/(x + eʸ), which
// triple the digits each.
func Log64(x float64) float64 {
	frac, exp := math.Frexp(x)
	m := frac - 1
	y := float64(float64(exp)*(ln2Hi+ln2Lo)) + (m - float64(m*m)/2)
	for range 5 {
		e := Exp64(y)
		y += 2 * (x - e) / (x + e)
	}
	return y
}

// Tanh64 is tanh x: by the series of sinh/cosh near zero, where 1 − 2/(e²ˣ+1) would cancel.
func Tanh64(x float64) float64 {
	switch a := math.Abs(x); {
	case a > 22:
		return math.Copysign(1, x)
	case a < 0.5:
		return tanhSmall(x)
	}
	return 1 - 2/(Exp64(2*x)+1)
}

// tanhSmall sums sinh and cosh by their Taylor terms; |x| < ½.
func tanhSmall(x float64) float64 {
	x2 := float64(x * x)
	sinh, cosh := 0.0, 0.0
	for n := 14; n >= 0; n-- {
		if n%2 == 1 {
			sinh = float64(sinh*x2) + expTerms[n]
		} else {
			cosh = float64(cosh*x2) + expTerms[n]
		}
	}
	return float64(sinh*x) / cosh
}

// SinCos64 is sin x and cos x for |x| < 2^19: x = k·π/2 + r with three-part π/2, Taylor series of r, quadrant by k.
func SinCos64(x float64) (sin, cos float64) {
	k := math.RoundToEven(x * invHalfP)
	r := float64(x-float64(k*halfPi1)) - float64(k*halfPi2)
	r -= float64(k * halfPi3)
	r2 := float64(r * r)
	s, c := float64(horner(sinTerms[:], r2)*r), horner(cosTerms[:], r2)
	switch int64(k) & 3 {
	case 0:
		return s, c
	case 1:
		return c, -s
	case 2:
		return -s, -c
	}
	return -c, s
}

// gelu64 is the tanh form of GELU.
func gelu64(x float64) float64 {
	const rootTwoOverPi = 0x1.9884533d43651p-1
	cube := float64(float64(x*x) * x)
	inner := float64(rootTwoOverPi * (x + float64(0.044715*cube)))
	return float64(0.5*x) * (1 + Tanh64(inner))
}

// InvFreq returns the float32 frequencies of a head of width d, formed as Hugging Face forms them: fp32 exponent, fp32 power, fp32
// reciprocal; zero (identity) from pair `pairs` on. A different rounding is one ulp, which is 4e-5 rad at position 600.
func InvFreq(theta float64, d, pairs int) []float32 {
	freq := make([]float32, d/2)
	logTheta := Log64(theta)
	for i := range pairs {
		exponent := float32(2*i) / float32(d)
		freq[i] = 1 / float32(Exp64(float64(float64(exponent)*logTheta)))
	}
	return freq
}
