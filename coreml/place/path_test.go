package place

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// ms are estimates in milliseconds: engine, then the CPU; a negative number is a refusal.
func ms(ane, cpu float64) Seconds {
	s := Seconds{ane * 1e-3, cpu * 1e-3, cpu * 1e-3}
	if ane < 0 {
		s[ANE] = refused
	}
	return s
}

func units(path []Backend) (all string) {
	for _, b := range path {
		all += b.Unit()[:1]
	}
	return all
}

// hand: sums of the four terms. A graph must save 0.25 ms to go to the engine, an island in it 0.375 less what its ends save
// anyway, one op inside that the engine refuses costs two changes (spec ane.md A5).
func TestBothSidesOfEveryCost(t *testing.T) {
	const e = 0.001
	for name, c := range map[string]struct {
		steps []Seconds
		want  string
	}{
		"saves just under enter + leave":                {[]Seconds{ms(0, 0.25-e)}, "C"},
		"saves just over enter + leave":                 {[]Seconds{ms(0, 0.25+e)}, "A"},
		"first op elsewhere: just under change + leave": {[]Seconds{ms(-1, 0), ms(0, 0.25-e)}, "CC"},
		"first op elsewhere: just over change + leave":  {[]Seconds{ms(-1, 0), ms(0, 0.25+e)}, "CA"},
		"last op elsewhere: just under":                 {[]Seconds{ms(0, 0.25-e), ms(-1, 0)}, "CC"},
		"last op elsewhere: just over":                  {[]Seconds{ms(0, 0.25+e), ms(-1, 0)}, "AC"},
		"an island: just under two changes":             {[]Seconds{ms(-1, 0), ms(0, 0.25-e), ms(-1, 0)}, "CCC"},
		"an island: just over two changes":              {[]Seconds{ms(-1, 0), ms(0, 0.25+e), ms(-1, 0)}, "CAC"},
		"a refusal within: the second half pays":        {[]Seconds{ms(0, 1), ms(-1, 0), ms(0, 0.25+e)}, "ACA"},
		"a refusal within: the second half does not":    {[]Seconds{ms(0, 1), ms(-1, 0), ms(0, 0.25-e)}, "ACC"},
		"a slow op within stays for two changes":        {[]Seconds{ms(0, 1), ms(0.25-e, 0), ms(0, 1)}, "AAA"},
		"a slower op leaves":                            {[]Seconds{ms(0, 1), ms(0.25+e, 0), ms(0, 1)}, "ACA"},
		"a tie stays where it is":                       {[]Seconds{ms(0, 1), ms(0.002, 0.002)}, "AA"},
		"nothing":                                       {nil, ""},
	} {
		p := Cheapest(c.steps, DefaultCosts)
		require.Equal(t, c.want, units(p.Best), name)
		require.InDelta(t, Cost(c.steps, p.Best, DefaultCosts), p.Seconds, tie, name)
	}
}

// hand: the two libraries of the CPU are backends, too.
func TestLibrariesOfTheCPUChange(t *testing.T) {
	steps := []Seconds{{refused, 1e-3, refused}, {refused, 1e-3, 0}}
	p := Cheapest(steps, DefaultCosts)
	require.Equal(t, []Backend{BNNS, ClassicCPU}, p.Best)
	require.InDelta(t, 1.125e-3, p.Seconds, tie)
	steps[1][BNNS] = 0.1e-3
	require.Equal(t, []Backend{BNNS, BNNS}, Cheapest(steps, DefaultCosts).Best)
	require.True(t, math.IsInf(Cost(steps, []Backend{ANE, BNNS}, DefaultCosts), 1))
}

// oracle: all paths of short sequences, tried one by one.
func TestCheapestAgainstEveryPath(t *testing.T) {
	state := uint64(7)
	next := func(n uint64) float64 {
		state = state*6364136223846793005 + 1442695040888963407
		return float64((state >> 33) % n)
	}
	for range 300 {
		steps := make([]Seconds, 1+int(next(6)))
		for i := range steps {
			steps[i] = Seconds{next(300) * 1e-6, next(300) * 1e-6, next(300) * 1e-6}
			if b := int(next(5)); b < backends {
				steps[i][b] = refused
			}
		}
		p := Cheapest(steps, DefaultCosts)
		least, through := math.Inf(1), make([]Seconds, len(steps))
		for i := range through {
			through[i] = Seconds{refused, refused, refused}
		}
		path := make([]Backend, len(steps))
		var try func(i int)
		try = func(i int) {
			if i < len(steps) {
				for path[i] = ANE; path[i] < backends; path[i]++ {
					try(i + 1)
				}
				return
			}
			cost := Cost(steps, path, DefaultCosts)
			least = min(least, cost)
			for j, b := range path {
				through[j][b] = min(through[j][b], cost)
			}
		}
		try(0)
		require.InDelta(t, least, p.Seconds, tie)
		require.InDelta(t, least, Cost(steps, p.Best, DefaultCosts), tie)
		for i := range through {
			for b := range through[i] {
				if math.IsInf(through[i][b], 1) {
					require.True(t, math.IsInf(p.Through[i][b], 1))
				} else {
					require.InDelta(t, through[i][b], p.Through[i][b], tie)
				}
			}
		}
	}
}
