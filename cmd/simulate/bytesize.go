package main

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// byteSize is a flag such as 4.1GB, to the byte.
type byteSize struct {
	bytes int64
	text  string
}

func (b *byteSize) String() string { return b.text }

// Set replaces the size.
func (b *byteSize) Set(text string) error {
	n, err := parseBytes(text)
	if err != nil {
		return err
	}
	b.bytes, b.text = n, text
	return nil
}

// Type is the placeholder in help.
func (b *byteSize) Type() string { return "SIZE" }

// byteUnits in lower case; a letter alone means the decimal unit.
var byteUnits = map[string]uint64{"": 1, "b": 1, "k": 1e3, "kb": 1e3, "m": 1e6, "mb": 1e6, "g": 1e9, "gb": 1e9, "t": 1e12, "tb": 1e12,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}

// parseBytes reads decimal digits and a unit in whole numbers: 4.1GB is 41 times 10⁸ bytes, which no binary fraction is.
func parseBytes(text string) (int64, error) {
	number := strings.TrimRight(text, "bBkKmMgGtTiI")
	unit, known := byteUnits[strings.ToLower(text[len(number):])]
	whole, fraction, point := strings.Cut(number, ".")
	digits := whole + fraction
	if !known || digits == "" || point && fraction == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, fmt.Errorf("%q is not a size: want digits and a unit such as 512MB, 4.1GB or 2GiB", text)
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	hi, lo := bits.Mul64(n, unit)
	scale := uint64(1)
	for range fraction {
		scale *= 10
	}
	if err != nil || len(fraction) > 12 || hi >= scale {
		return 0, fmt.Errorf("%s is too much, or too exact", text)
	}
	size, rest := bits.Div64(hi, lo, scale)
	switch {
	case rest != 0:
		return 0, fmt.Errorf("%s is no whole number of bytes", text)
	case size == 0 || size > math.MaxInt64:
		return 0, fmt.Errorf("%s: want at least a byte and less than 2^63", text)
	}
	return int64(size), nil
}
