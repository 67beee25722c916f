package torchpickle

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
)

// scan reads a pickle without running it. It passes only the opcodes torch.save writes for a dict of tensors, with arguments
// that lie inside the pickle, and only names of the allow-list: gopickle itself would allocate what a length promises and
// knows classes of its own that no hook sees.
func scan(pickle []byte) error {
	s := scanner{rest: pickle, memo: map[int]string{}}
	for {
		if len(s.rest) == 0 {
			return fmt.Errorf("the pickle ends without STOP")
		}
		at, code := len(pickle)-len(s.rest), s.rest[0]
		s.rest = s.rest[1:]
		op, ok := opcodes[code]
		if !ok {
			return s.refuse(at, code)
		}
		if code == opStop {
			break
		}
		arg, err := s.argument(op.arg)
		if err == nil {
			err = s.follow(code, op, arg)
		}
		if err != nil {
			return fmt.Errorf("%s at byte %d: %w", op.name, at, err)
		}
	}
	if len(s.rest) > 0 {
		return fmt.Errorf("%d bytes after STOP", len(s.rest))
	}
	return nil
}

// scanner follows just enough of the machine to know every class name: which strings lie on top of the stack, and which the
// memo holds.
type scanner struct {
	rest        []byte
	memo        map[int]string // strings only; what else is memoised has an entry with a text no name can be
	top, second string         // notString unless pushed as text right before
	marks       int            // open ones
	builds      int
}

const (
	notString = "\x00"
	maxMarks  = 64
	maxBuilds = 8
)

// argument cuts the argument of an opcode off.
func (s *scanner) argument(form argForm) ([]byte, error) {
	switch {
	case form >= 0:
		return s.take(uint64(form))
	case form == twoLines:
		first := bytes.IndexByte(s.rest, '\n')
		second := -1
		if first >= 0 {
			second = bytes.IndexByte(s.rest[first+1:], '\n')
		}
		if second < 0 {
			return nil, fmt.Errorf("no end of line")
		}
		return s.take(uint64(first + second + 2))
	case form == line:
		n := bytes.IndexByte(s.rest, '\n')
		if n < 0 {
			return nil, fmt.Errorf("no end of line")
		}
		return s.take(uint64(n + 1))
	}
	size := map[argForm]uint64{count1: 1, count4: 4, count8: 8}[form]
	head, err := s.take(size)
	if err != nil {
		return nil, err
	}
	var n [8]byte
	copy(n[:], head)
	return s.take(binary.LittleEndian.Uint64(n[:]))
}

func (s *scanner) take(n uint64) ([]byte, error) {
	if n > uint64(len(s.rest)) {
		return nil, fmt.Errorf("an argument of %d bytes where %d are left", n, len(s.rest))
	}
	arg := s.rest[:n]
	s.rest = s.rest[n:]
	return arg, nil
}

// follow updates the strings on top of the stack and checks class names.
func (s *scanner) follow(code byte, op opcode, arg []byte) error {
	switch op.effect {
	case noEffect:
		if code == opFrame && binary.LittleEndian.Uint64(arg) > uint64(len(s.rest)) {
			return fmt.Errorf("a frame of %d bytes where %d are left", binary.LittleEndian.Uint64(arg), len(s.rest))
		}
	case pushesText:
		s.push(string(arg))
	case toMemo:
		s.memo[s.slot(arg)] = s.top
	case fromMemo:
		text, ok := s.memo[int(number(arg))]
		if !ok {
			return fmt.Errorf("memo entry %d is empty", number(arg))
		}
		s.push(text)
	case namesClass:
		return s.class(code, arg)
	default:
		s.top, s.second = notString, notString
		return s.count(code)
	}
	return nil
}

// count limits what multiplies work: gopickle allocates a stack for each open mark, and a BUILD walks a whole dict, which may
// be the same one every time. torch.save writes one BUILD, for the attributes of the dict.
func (s *scanner) count(code byte) error {
	switch code {
	case opMark:
		s.marks++
	case opTuple, opSetItems, opAppends:
		s.marks--
	case opBuild:
		s.builds++
	}
	switch {
	case s.marks > maxMarks:
		return fmt.Errorf("more than %d open marks", maxMarks)
	case s.builds > maxBuilds:
		return fmt.Errorf("more than %d of them", maxBuilds)
	}
	return nil
}

func (s *scanner) push(text string) { s.top, s.second = text, s.top }

// slot is the memo index of a store; MEMOIZE, which has no argument, takes the next one.
func (s *scanner) slot(arg []byte) int {
	if len(arg) == 0 {
		return len(s.memo)
	}
	return int(number(arg))
}

func number(arg []byte) uint32 {
	var n [4]byte
	copy(n[:], arg)
	return binary.LittleEndian.Uint32(n[:])
}

// class checks the name that GLOBAL spells out or STACK_GLOBAL takes from the stack.
func (s *scanner) class(code byte, arg []byte) error {
	module, name := s.second, s.top
	if code == opGlobal {
		m, n, _ := bytes.Cut(arg[:len(arg)-1], []byte("\n"))
		module, name = string(m), string(n)
	}
	s.top, s.second = notString, notString
	if module == notString || name == notString {
		return fmt.Errorf("a computed class name")
	}
	return allowed(module, name)
}

// refuse names what an opcode outside the table would have done.
func (s *scanner) refuse(at int, code byte) error {
	if code == 'i' { // INST carries the name of a class
		if arg, err := s.argument(twoLines); err == nil {
			if err := s.class(opGlobal, arg); err != nil {
				return fmt.Errorf("INST at byte %d: %w", at, err)
			}
		}
	}
	name := refusedNames[code]
	if name == "" {
		name = "unknown opcode " + strconv.QuoteRune(rune(code))
	}
	return fmt.Errorf("%s at byte %d: torch.save does not write it for tensors", name, at)
}
