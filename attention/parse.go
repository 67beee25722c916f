package attention

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"anelab/internal/format"
)

// parser reads the argument of a policy's text form; text is the whole of it.
type parser func(text, arg string) (Policy, error)

// kind is a registered policy.
type kind struct {
	example string
	parse   parser
}

var kinds = map[string]kind{}

// register makes a policy known to [Parse]. The file of a policy calls it, so a new policy is one file.
func register(name, example string, p parser) struct{} {
	kinds[name] = kind{example, p}
	return struct{}{}
}

// errForm says that an argument is not what the example shows.
var errForm = errors.New("attention: not the form of the example")

// Parse reads a policy's text form, NAME[:ARGUMENTS][/FORM]; String writes it back. Whether it fits a model is for [Fit] to say.
func Parse(text string) (Policy, error) {
	mask, form, stored := strings.Cut(text, "/")
	p, err := parseMask(mask)
	if err != nil || !stored {
		return p, err
	}
	return parseStored(p, form)
}

func parseMask(text string) (Policy, error) {
	name, arg, _ := strings.Cut(text, ":")
	k, ok := kinds[name]
	if !ok {
		return nil, &format.Error{Field: "attn", Got: strconv.Quote(text), Want: "one of " + strings.Join(Examples(), ", "), Fix: format.DidYouMean(name, Names())}
	}
	p, err := k.parse(text, arg)
	if err == nil && p.String() != text { // one text per policy: no leading zeros, no signs
		err = errForm
	}
	if err != nil {
		var fault *format.Error
		if errors.As(err, &fault) {
			return nil, err
		}
		return nil, &format.Error{Field: "attn", Got: strconv.Quote(text), Want: "the form of " + k.example}
	}
	return p, nil
}

// Names lists the policies that Parse knows.
func Names() []string { return slices.Sorted(maps.Keys(kinds)) }

// Examples has a text form of each of them.
func Examples() []string {
	var all []string
	for _, name := range Names() {
		all = append(all, kinds[name].example)
	}
	return all
}

// most is the largest number of positions in a text form.
const most = 1 << 24

// number reads a whole number of at least least.
func number(text string, least int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, errForm
	}
	return n, nil
}

// numbers reads two whole numbers with sep between them.
func numbers(text, sep string, least [2]int) (a, b int, err error) {
	first, second, ok := strings.Cut(text, sep)
	if !ok {
		return 0, 0, errForm
	}
	a, errA := number(first, least[0])
	b, errB := number(second, least[1])
	return a, b, errors.Join(errA, errB)
}
