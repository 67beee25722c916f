package chunking

import (
	"fmt"
	"strconv"
	"strings"

	"anelab/internal/format"
)

// maxDigits keeps numbers of outside text far from overflow; no setting needs more.
const maxDigits = 8

// ParseCut reads one chunk without settings: "L0-7", "4", "25-34+head", "head". Whether the model has the layers is for
// [Layout.Violations] to say; it is asked only where the head alone belongs.
func ParseCut(text string, m *Model) (Cut, error) {
	c, _, fault := readCut(text, m)
	if fault != nil {
		fault.Field = "layers"
		return Cut{}, &fault.Error
	}
	return c, nil
}

// wordFault is a fault at an offset of a word.
type wordFault struct {
	format.Error
	at int
}

func readCut(text string, m *Model) (Cut, place, *wordFault) {
	at := place{end: len(text), head: len(text)}
	if text == "head" {
		at.head = 0
		return Cut{Lo: len(m.Layers), Hi: len(m.Layers), Head: true}, at, nil
	}
	c := Cut{}
	layers, rest, plus := strings.Cut(text, "+")
	if plus && rest != "head" {
		return c, at, &wordFault{format.Error{Got: strconv.Quote("+" + rest), Want: `"+head"`, Fix: headFix(rest)}, len(layers)}
	}
	if c.Head = plus; plus {
		at.head = len(layers)
	}
	first, second, isRange := strings.Cut(layers, "-")
	lo, fault := readLayer(text, first, 0)
	if fault != nil {
		return c, at, fault
	}
	hi := lo
	if isRange {
		at.hi = len(first) + 1
		if hi, fault = readLayer(text, second, at.hi); fault != nil {
			return c, at, fault
		}
	}
	if hi < lo {
		return c, at, &wordFault{format.Error{Got: fmt.Sprintf("%s runs backwards", text), Fix: fmt.Sprintf("write L%d-%d", hi, lo)}, 0}
	}
	c.Lo, c.Hi = lo, hi+1
	return c, at, nil
}

func headFix(rest string) string {
	if format.Closest(rest, []string{"head"}) != "" || rest == "" {
		return `did you mean "+head"?`
	}
	return "only the head can be added to layers"
}

// readLayer reads "L7" or "7", found at an offset of the word.
func readLayer(word, text string, at int) (int, *wordFault) {
	digits := strings.TrimPrefix(strings.TrimPrefix(text, "L"), "l")
	if len(text)-len(digits) > 1 {
		digits = text
	}
	n, err := readNumber(digits)
	if err == nil {
		return n, nil
	}
	f := &wordFault{format.Error{Got: strconv.Quote(word), Want: "layers such as L0-7, L4, L25-34+head, or head"}, at}
	switch {
	case err == errTooLarge:
		f.Got, f.Want = "layer "+clip(digits, 20)+" does not exist", ""
	case strings.ContainsAny(word, "–—"):
		f.Fix = `write "-" between the layers`
	case strings.Contains(word, "="):
		f.Fix = "settings follow the layers of a chunk"
	case format.Closest(word, []string{"head"}) != "":
		f.Fix = `did you mean "head"?`
	}
	return 0, f
}

var (
	errNoNumber = &format.Error{Want: "a number"}
	errTooLarge = &format.Error{Want: "a smaller number"}
)

// readNumber reads plain decimal digits: no sign, no leading zeros to hide behind, nothing that can overflow.
func readNumber(text string) (int, *format.Error) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, errNoNumber
	}
	if len(text) > maxDigits {
		return 0, errTooLarge
	}
	n, _ := strconv.Atoi(text) // only digits, few of them
	return n, nil
}

// readSize reads the value of a setting that must be at least 1.
func readSize(text, key string, most int) (int, error) {
	n, err := readNumber(text)
	if err != nil || n < 1 || n > most {
		return 0, &format.Error{Field: key, Got: fmt.Sprintf("%s=%s", key, clip(text, 20)), Want: fmt.Sprintf("1 to %d", most)}
	}
	return n, nil
}

// kvModes are the text forms of KV modes; "fp16" names the element type that explicit ports have anyway.
var kvModes = map[string]KVMode{"explicit": ExplicitIO, "explicit-io": ExplicitIO, "fp16": ExplicitIO}

// ParseKVMode reads "explicit".
func ParseKVMode(text string) (KVMode, error) {
	if mode, ok := kvModes[text]; ok {
		return mode, nil
	}
	fix := format.DidYouMean(text, []string{"explicit"})
	if strings.HasPrefix(text, "state") || strings.HasPrefix(text, "mlstate") {
		fix = "caches in Core ML states are not planned yet"
	}
	return 0, &format.Error{Field: "kv", Got: "kv=" + clip(text, 20), Want: `"explicit"`, Fix: fix}
}

// String is the text form.
func (m KVMode) String() string { return "explicit" }
