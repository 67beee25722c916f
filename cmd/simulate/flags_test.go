package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/chunking"
	"anelab/cmd/simulate/internal/console"
)

func TestCLI03LengthsAreReadExactly(t *testing.T) { // hand: no fraction, no float, nothing rounded
	for text, want := range map[string]string{"512": "512", "8k": "8192", "8K": "8192", "512,2048,512": "512,2048", " 7 ": "7"} {
		var s sizes
		require.NoError(t, s.Set(text), text)
		require.Equal(t, want, s.String())
	}
	for _, text := range []string{"", "4.1k", "1.5", "-1", "-1k", "1e3", "1e3M", "0", "8G", "99999999999", "2048,", "k"} {
		var s sizes
		require.Error(t, s.Set(text), "%q", text)
		require.Empty(t, s.values)
	}
}

func TestSpan(t *testing.T) { // hand
	for text, want := range map[string]span{"3": {3, 3}, "1..5": {1, 5}, "2..2": {2, 2}} {
		var s span
		require.NoError(t, s.Set(text))
		require.Equal(t, want, s)
	}
	for _, text := range []string{"", "0", "5..1", "1...5", "a..b", "1..", "-1..2"} {
		require.Error(t, new(span).Set(text), "%q", text)
	}
}

func TestShard(t *testing.T) { // hand; invariant: parts are neighbours, and together the whole
	for _, text := range []string{"", "1", "0/3", "4/3", "1/0", "-1/3", "1/3x", "01/3", "1/3/5", "1/9999999"} {
		require.Error(t, new(shard).Set(text), "%q", text)
	}
	for _, total := range []int64{0, 2, 7, 158868, 1 << 50} {
		end := int64(0)
		for i := 1; i <= 5; i++ {
			var s shard
			require.NoError(t, s.Set(fmt.Sprintf("%d/5", i)))
			from, to := s.of(total)
			require.Equal(t, end, from)
			require.LessOrEqual(t, to-from, total/5+1)
			end = to
		}
		require.Equal(t, total, end)
	}
}

func TestPercent(t *testing.T) { // hand
	var p percent
	require.NoError(t, p.Set("3%"))
	require.Equal(t, percent{0.03, true}, p)
	require.NoError(t, p.Set("2.5"))
	require.Equal(t, "2.5%", p.String())
	for _, text := range []string{"", "-1%", "NaN", "Inf", "3%%"} {
		require.Error(t, new(percent).Set(text), "%q", text)
	}
}

func TestExitCodes(t *testing.T) { // hand: README, docs of main
	interrupted, stop := context.WithCancel(context.Background())
	stop()
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		code int
	}{
		"done":                {context.Background(), nil, 0},
		"failed":              {context.Background(), errors.New("disk"), 1},
		"usage":               {context.Background(), fmt.Errorf("x: %w", usagef("flag")), 2},
		"layout":              {context.Background(), &chunking.ParseError{}, 2},
		"no":                  {context.Background(), errNo, 3},
		"interrupted":         {interrupted, fmt.Errorf("record 7: %w", context.Canceled), 130},
		"broken pipe":         {context.Background(), fmt.Errorf("write: %w", syscall.EPIPE), 0},
		"cancelled by itself": {context.Background(), context.Canceled, 1},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.code, exitCode(c.ctx, c.err)) })
	}
}

func TestManyFaultsAreCutShort(t *testing.T) { // hand
	var b bytes.Buffer
	var all []error
	for i := range 13 {
		all = append(all, fmt.Errorf("line %d", i))
	}
	printError(&console.Console{Err: &b}, errors.Join(all...))
	require.Equal(t, mostErrors+1, strings.Count(b.String(), "\n"))
	require.Contains(t, b.String(), "simulate: … and 3 more\n")
}

// session is the command in this process, for benchmarks.
func session(args ...string) int {
	return run(&console.Console{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Getenv: func(string) string { return "" }}, args)
}

// BenchmarkPlan is one run of simulate plan without the start of the process.
func BenchmarkPlan(b *testing.B) {
	for b.Loop() {
		require.Zero(b, session("plan", "@3way"))
	}
}

// BenchmarkSweep prices every layout of one to five chunks at one context and ranks them: 52,956 layouts.
func BenchmarkSweep(b *testing.B) {
	for b.Loop() {
		require.Zero(b, session("sweep", "--context", "2048"))
	}
	b.ReportMetric(52956*float64(b.N)/b.Elapsed().Seconds(), "layouts/s")
}
