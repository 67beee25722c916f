package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCLI03SizesAreExact(t *testing.T) { // hand
	for text, want := range map[string]int64{
		"4.1GB": 4_100_000_000, "8.2MB": 8_200_000, "16.9GB": 16_900_000_000, "2.7GB": 2_700_000_000, "5": 5, "1.5g": 1_500_000_000, "007kB": 7000,
		"1KiB": 1024, "1.5GiB": 3 << 29, "0.001k": 1, "9223372036854775807": 1<<63 - 1, ".5k": 500, "1TB": 1e12, "123456.789MB": 123_456_789_000,
	} {
		got, err := parseBytes(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "-1G", "1e3M", "GB", "1.", "1..2k", "1.2.3k", "0", "0.0GB", "0.0001k", "1.5", "1XB", "1 GB", " 1GB", "+1", "1,5GB", "9223372036854775808", "99999999TB",
		"18446744073709551616", "0.0000000000001TB", "1kkB", "٣MB", "1GBB"} {
		_, err := parseBytes(text)
		require.Error(t, err, text)
	}
}

func FuzzParseBytes(f *testing.F) {
	for _, s := range []string{"4.1GB", "1e3M", "", ".", "1.5GiB", "999999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := parseBytes(text); err == nil {
			require.Positive(t, n)
		}
	})
}
