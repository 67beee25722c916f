package npy

import (
	"fmt"
	"strconv"
	"strings"
)

// header is the dictionary of a .npy file.
type header struct {
	descr   string
	fortran bool
	shape   []uint64
}

// parseHeader reads the one Python literal the format knows: a dictionary with the keys descr, fortran_order and shape, each
// once, in any order. A shape is a tuple, so one number needs its comma: "(184)" is a number in brackets.
func parseHeader(text string) (header, error) {
	p := pythonReader{rest: strings.TrimRight(text, " \n")}
	var h header
	seen := map[string]bool{}
	if err := p.expect("{"); err != nil {
		return h, err
	}
	for !p.accept("}") {
		key, err := p.quoted()
		if err != nil {
			return h, err
		}
		if seen[key] {
			return h, fmt.Errorf("%s is there twice", key)
		}
		seen[key] = true
		if err := p.expect(":"); err != nil {
			return h, err
		}
		if err := h.read(&p, key); err != nil {
			return h, fmt.Errorf("%s: %w", key, err)
		}
		if !p.accept(",") && !strings.HasPrefix(p.skip(), "}") {
			return h, p.wrong("a comma or }")
		}
	}
	if p.skip() != "" {
		return h, p.wrong("nothing after the dictionary")
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if !seen[key] {
			return h, fmt.Errorf("no %s", key)
		}
	}
	return h, nil
}

// read reads the value of a key.
func (h *header) read(p *pythonReader, key string) (err error) {
	switch key {
	case "descr":
		h.descr, err = p.quoted() // a list here describes a structure
	case "fortran_order":
		h.fortran, err = p.boolean()
	case "shape":
		h.shape, err = p.tuple()
	default:
		err = fmt.Errorf("unknown key")
	}
	return err
}

// pythonReader reads the few literals that occur in headers.
type pythonReader struct{ rest string }

func (p *pythonReader) skip() string {
	p.rest = strings.TrimLeft(p.rest, " \t\n\r")
	return p.rest
}

func (p *pythonReader) accept(token string) bool {
	rest, ok := strings.CutPrefix(p.skip(), token)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *pythonReader) expect(token string) error {
	if !p.accept(token) {
		return p.wrong(strconv.Quote(token))
	}
	return nil
}

// wrong describes the next few characters.
func (p *pythonReader) wrong(want string) error {
	got := p.skip()
	if got == "" {
		return fmt.Errorf("got the end, want %s", want)
	}
	return fmt.Errorf("got %q, want %s", got[:min(len(got), 16)], want)
}

// quoted reads a string without escapes.
func (p *pythonReader) quoted() (string, error) {
	for _, quote := range []string{"'", `"`} {
		if !p.accept(quote) {
			continue
		}
		text, rest, ok := strings.Cut(p.rest, quote)
		if !ok || strings.ContainsAny(text, "\\\n") {
			return "", fmt.Errorf("a string without its end")
		}
		p.rest = rest
		return text, nil
	}
	return "", p.wrong("a string")
}

func (p *pythonReader) boolean() (bool, error) {
	switch {
	case p.accept("True"):
		return true, nil
	case p.accept("False"):
		return false, nil
	}
	return false, p.wrong("True or False")
}

// tuple reads (), (n,) and (n, m, …).
func (p *pythonReader) tuple() ([]uint64, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	dims, comma := []uint64{}, true
	for !p.accept(")") {
		if !comma || len(dims) == rankLimit {
			return nil, p.wrong("a comma or )")
		}
		n, err := p.number()
		if err != nil {
			return nil, err
		}
		dims = append(dims, n)
		comma = p.accept(",")
	}
	if len(dims) == 1 && !comma {
		return nil, fmt.Errorf("got (%d), want a tuple: (%d,)", dims[0], dims[0])
	}
	return dims, nil
}

func (p *pythonReader) number() (uint64, error) {
	digits := len(p.skip()) - len(strings.TrimLeft(p.rest, "0123456789"))
	n, err := strconv.ParseUint(p.rest[:digits], 10, 64)
	if err != nil {
		return 0, p.wrong("a number from 0 to 2^64-1")
	}
	p.rest = p.rest[digits:]
	return n, nil
}
