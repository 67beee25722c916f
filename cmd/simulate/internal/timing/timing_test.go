package timing

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/gemmatest"
)

func TestRun(t *testing.T) { // hand: names, counts and order of the tests
	a, err := arith.New("f32", 1)
	require.NoError(t, err)
	c := gemmatest.Config()
	m, err := gemma4.Load(c, gemmatest.New(c, 1), a, gemma4.Options{})
	require.NoError(t, err)
	spec := Spec{Prompts: []int{5}, Generate: 3, Depths: []int{0, 9}, Repeat: 3}
	require.Equal(t, 18, spec.Context())
	var tests []Test
	require.NoError(t, Run(context.Background(), m, spec, func(t Test) { tests = append(tests, t) }))
	var names []string
	for _, x := range tests {
		names = append(names, x.Name)
		require.Len(t, x.Seconds, 3)
		require.LessOrEqual(t, x.Slowest(), x.Rate())
		require.LessOrEqual(t, x.Rate(), x.Fastest())
	}
	require.Equal(t, []string{"pp5", "tg3", "tg3 @ d9"}, names)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, Run(ctx, m, spec, func(Test) {}), context.Canceled)
	if runtime.GOOS == "linux" {
		require.Positive(t, PeakRSS())
	}
}
