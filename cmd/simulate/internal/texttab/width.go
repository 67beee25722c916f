package texttab

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// PageWidth is the number of columns that everyone has.
const PageWidth = 80

// Width is the number of columns of a line without colour. Combining marks take none; wide (East Asian) characters do not
// occur in what this command writes itself and count as one.
func Width(s string) int {
	n := 0
	for _, r := range s {
		if !unicode.Is(unicode.Mn, r) {
			n++
		}
	}
	return n
}

// Fold breaks text between words into lines of at most width columns. A longer word gets a line of its own, cut where it must be.
func Fold(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		for Width(word) > width {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			at := byteAt(word, width)
			lines, word = append(lines, word[:at]), word[at:]
		}
		switch {
		case line == "":
			line = word
		case Width(line)+1+Width(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// byteAt is the offset behind the first n characters.
func byteAt(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// Clip shortens a line to width columns, with an ellipsis where something is missing.
func Clip(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return s[:byteAt(s, width-1)] + "…"
}

func pad(n int) string { return strings.Repeat(" ", max(n, 0)) }
