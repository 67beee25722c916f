package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"anelab/cmd/simulate/internal/console"
	"anelab/internal/format"
)

// choice is a flag with a fixed list of values.
type choice struct {
	value   string
	allowed []string
	what    string // in help: "FORMAT"
}

func (c *choice) String() string { return c.value }

// Set refuses what is not in the list and says what is.
func (c *choice) Set(s string) error {
	if !slices.Contains(c.allowed, s) {
		if near := format.Closest(s, c.allowed); near != "" {
			return fmt.Errorf("did you mean %q? known: %s", near, strings.Join(c.allowed, ", "))
		}
		return fmt.Errorf("known: %s", strings.Join(c.allowed, ", "))
	}
	c.value = s
	return nil
}

// Type is the placeholder in help.
func (c *choice) Type() string { return c.what }

// addChoice declares a flag of fixed values and completes them.
func addChoice(cmd *cobra.Command, name, usage string, c *choice) {
	cmd.Flags().Var(c, name, usage+": "+strings.Join(c.allowed, ", "))
	complete(cmd, name, c.allowed)
}

// complete offers fixed values for a flag.
func complete(cmd *cobra.Command, flag string, values []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic("simulate: completion for a flag that does not exist")
	}
}

// outputFlags say how and where a result is written.
type outputFlags struct {
	format choice
	color  choice
	path   string
}

// add declares the flags; formats are those the verb has, the first is the default.
func (o *outputFlags) add(cmd *cobra.Command, formats ...string) {
	o.format = choice{formats[0], formats, "FORMAT"}
	addChoice(cmd, "format", "result as", &o.format)
	o.color = choice{string(console.ColorAuto), []string{"auto", "always", "never"}, "WHEN"}
	addChoice(cmd, "color", "colour in text", &o.color)
	cmd.Flags().StringVarP(&o.path, "output", "o", "", "write the result to `FILE`, complete or not at all")
}

// sizes is a flag of positive whole numbers, comma-separated; 8k is 8192.
type sizes struct {
	values []int
	most   int // how many; 0 = any number
}

func (s *sizes) String() string {
	var parts []string
	for _, v := range s.values {
		parts = append(parts, strconv.Itoa(v))
	}
	return strings.Join(parts, ",")
}

// Set replaces the list.
func (s *sizes) Set(text string) error {
	var values []int
	for _, part := range strings.Split(text, ",") {
		v, err := parseSize(part)
		if err != nil {
			return err
		}
		if !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	if s.most > 0 && len(values) > s.most {
		return fmt.Errorf("want one number")
	}
	s.values = values
	return nil
}

// Type is the placeholder in help.
func (s *sizes) Type() string {
	if s.most == 1 {
		return "C"
	}
	return "C,…"
}

// parseSize reads whole numbers exactly: no fractions, so nothing is rounded.
func parseSize(text string) (int, error) {
	digits, kilo := strings.CutSuffix(strings.ToLower(strings.TrimSpace(text)), "k")
	v, err := strconv.ParseUint(digits, 10, 32)
	if kilo {
		v *= 1024
	}
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && v > maxLength:
		return 0, fmt.Errorf("%s is too long: want at most %d", text, maxLength)
	case err != nil || v == 0:
		return 0, fmt.Errorf("%q is not a length: want a whole number such as 2048 or 8k", text)
	}
	return int(v), nil
}

// maxLength is the longest context that layouts can ask for.
const maxLength = 1 << 20

// span is a flag of a number or a range: "3", "1..5".
type span struct{ lo, hi int }

func (s *span) String() string {
	if s.lo == s.hi {
		return strconv.Itoa(s.lo)
	}
	return fmt.Sprintf("%d..%d", s.lo, s.hi)
}

// Set reads both forms.
func (s *span) Set(text string) error {
	lo, hi, isRange := strings.Cut(text, "..")
	if !isRange {
		hi = lo
	}
	a, errA := strconv.Atoi(lo)
	b, errB := strconv.Atoi(hi)
	if errA != nil || errB != nil || a < 1 || b < a {
		return fmt.Errorf("want a number such as 3 or a range such as 1..5")
	}
	s.lo, s.hi = a, b
	return nil
}

// Type is the placeholder in help.
func (s *span) Type() string { return "N..M" }

// percent is a flag such as 3%.
type percent struct {
	fraction float64
	given    bool
}

func (p *percent) String() string {
	if !p.given {
		return ""
	}
	return strconv.FormatFloat(100*p.fraction, 'g', -1, 64) + "%"
}

// Set reads a percentage; the sign may be left out.
func (p *percent) Set(text string) error {
	v, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || !(v >= 0 && v <= 1000) {
		return fmt.Errorf("want a percentage from 0%% to 1000%%")
	}
	p.fraction, p.given = v/100, true
	return nil
}

// Type is the placeholder in help.
func (p *percent) Type() string { return "P%" }
