package console

// ColorMode is the value of --color.
type ColorMode string

// Modes of --color.
const (
	ColorAuto   ColorMode = "auto"
	ColorAlways ColorMode = "always"
	ColorNever  ColorMode = "never"
)

// Paint adds colour to text, or leaves it alone. Nothing is said by colour alone.
type Paint struct{ on bool }

// Paint decides about colour for results on standard output (https://no-color.org).
func (c *Console) Paint(mode ColorMode) Paint {
	switch mode {
	case ColorAlways:
		return Paint{true}
	case ColorNever:
		return Paint{}
	}
	return Paint{c.OutTerminal && c.Getenv("NO_COLOR") == "" && c.Getenv("TERM") != "dumb"}
}

// Bold is for headers and answers.
func (p Paint) Bold(s string) string { return p.wrap("1", s) }

// Good is for a verdict that is a yes.
func (p Paint) Good(s string) string { return p.wrap("32", s) }

// Bad is for a verdict that is a no.
func (p Paint) Bad(s string) string { return p.wrap("31", s) }

func (p Paint) wrap(code, s string) string {
	if !p.on || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
