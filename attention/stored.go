package attention

import (
	"fmt"
	"strconv"
	"strings"

	"anelab/internal/format"
	"anelab/swa"
)

// Stored is a policy whose owner keeps its rows in a form of its own: "full/int8", "stream:4+256/int8", "full/kivi:2g32+128",
// "full/palu:64", "full/like:4". The layers that share its rows read what the form left.
type Stored struct {
	Policy
	Form swa.Form
}

func (s Stored) String() string { return s.Policy.String() + "/" + formText(s.Form) }

// Unwrap is the policy without the form.
func (s Stored) Unwrap() Policy { return s.Policy }

// As returns p, or what it wraps, as an optional interface of policies.
func As[T any](p Policy) (T, bool) {
	for {
		if t, ok := p.(T); ok {
			return t, true
		}
		w, ok := p.(interface{ Unwrap() Policy })
		if !ok {
			var none T
			return none, false
		}
		p = w.Unwrap()
	}
}

// FormOf is the form that a policy stores rows in; zero for rows as they are.
func FormOf(p Policy) swa.Form {
	if s, ok := p.(Stored); ok {
		return s.Form
	}
	return swa.Form{}
}

// Fit reports why a policy cannot work with so many query and KV heads.
func Fit(p Policy, heads, kvHeads int) error {
	type fitter interface {
		Fit(heads, kvHeads int) error
	}
	if f, ok := As[fitter](p); ok {
		return f.Fit(heads, kvHeads)
	}
	return nil
}

// forms are the text forms, for messages.
const forms = "int8, kivi:<bits>[g<group>+<recent>], palu:<rank> or like:<layer>"

// Sizes of KIVI where the text has none, as published.
const (
	kiviGroup  = 32
	kiviRecent = 128
)

func formText(f swa.Form) string {
	switch {
	case f.Bytes:
		return "int8"
	case f.Group == kiviGroup && f.Recent == kiviRecent:
		return fmt.Sprintf("kivi:%d", f.Bits)
	case f.Group > 0:
		return fmt.Sprintf("kivi:%dg%d+%d", f.Bits, f.Group, f.Recent)
	case f.Rank > 0:
		return fmt.Sprintf("palu:%d", f.Rank)
	}
	return fmt.Sprintf("like:%d", f.Like-1)
}

func parseStored(p Policy, text string) (Policy, error) {
	f, err := parseForm(text)
	if err == nil && formText(f) != text {
		err = errForm
	}
	if err != nil {
		name, _, _ := strings.Cut(text, ":")
		return nil, &format.Error{Field: "attn", Got: strconv.Quote(p.String() + "/" + text), Want: "a form " + forms, Fix: format.DidYouMean(name, []string{"int8", "kivi", "palu", "like"})}
	}
	if f.Group > 0 && p.Keep() != swa.All {
		return nil, &format.Error{Field: "attn", Got: strconv.Quote(p.String() + "/" + text), Want: "a policy that keeps every row: kivi closes groups of positions, and a window would cut them",
			Fix: fmt.Sprintf("full/%s, or %s/int8", text, p)}
	}
	if _, selects := As[Selector](p); selects && f != (swa.Form{}) {
		return nil, &format.Error{Field: "attn", Got: strconv.Quote(p.String() + "/" + text), Want: "exact rows: the index of blocks is made of them", Fix: p.String()}
	}
	return Stored{p, f}, nil
}

func parseForm(text string) (swa.Form, error) {
	name, arg, _ := strings.Cut(text, ":")
	switch name {
	case "int8":
		return swa.Form{Bytes: true}, nil
	case "kivi":
		return parseKivi(arg)
	case "palu":
		n, err := number(arg, 1)
		return swa.Form{Rank: n}, err
	case "like":
		n, err := number(arg, 0)
		return swa.Form{Like: n + 1}, err
	}
	return swa.Form{}, errForm
}

func parseKivi(arg string) (swa.Form, error) {
	f := swa.Form{Group: kiviGroup, Recent: kiviRecent}
	bits, sizes, given := strings.Cut(arg, "g")
	var err error
	if f.Bits, err = number(bits, 1); err != nil || f.Bits > 8 {
		return f, errForm
	}
	if given {
		f.Group, f.Recent, err = numbers(sizes, "+", [2]int{1, 0})
	}
	return f, err
}
