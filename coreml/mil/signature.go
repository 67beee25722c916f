package mil

import (
	"fmt"
	"slices"
	"strings"
)

// Signature is what an op type takes and yields.
type Signature struct {
	Type   string
	Since  Opset // the first opset that has it
	Params []Param
	infer  inferFunc
}

// Param is one parameter of an op.
type Param struct {
	Name     string
	Optional Presence
	Const    Constancy
	Arity    Arity
	Since    Opset   // the first opset that has it
	Types    TypeSet // element types allowed; of the kinds of other types, see Kind
	Kind     Kind    // Tensor for most
	Group    byte    // parameters with the same letter have the same element type; 0 for none
}

// Presence says whether a parameter may be absent.
type Presence bool

// Constancy says whether the argument must be known before the program runs.
type Constancy bool

// Arity says how many bindings an argument has.
type Arity uint8

// One binding, or as many as there are.
const (
	One Arity = iota
	Many
)

// TypeSet is a set of element types.
type TypeSet uint64

func setOf(types ...DType) TypeSet {
	var s TypeSet
	for _, d := range types {
		s |= 1 << d
	}
	return s
}

// Has reports whether d is in s.
func (s TypeSet) Has(d DType) bool { return s&(1<<d) != 0 }

// String lists the types.
func (s TypeSet) String() string {
	var names []string
	for d := range dtypes {
		if s.Has(DType(d)) {
			names = append(names, DType(d).String())
		}
	}
	return strings.Join(names, " or ")
}

// Sets of element types by the word that the op tables use for them.
var typeSets = map[string]TypeSet{
	"float":   setOf(Float16, Float32),
	"number":  setOf(Float16, Float32, Int32),
	"numbers": setOf(Float16, Float32, Int8, Int16, Int32, UInt8, UInt16),
	"data":    setOf(Float16, Float32, Int8, Int16, Int32, UInt8, UInt16, Bool),
	"int":     setOf(Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64),
	"bool":    setOf(Bool),
	"string":  setOf(String),
	"mask":    setOf(Bool, Float16, Float32),
	"byte":    setOf(Int8, UInt8),
	"index":   setOf(UInt1, UInt2, UInt3, UInt4, UInt6, UInt8),
	"bit":     setOf(UInt1, UInt8),
	"entry":   setOf(Int8, UInt8, Float16, Float32),
	"stored":  setOf(Int4, UInt4, Int8, UInt8, Float16, Float32),
	"any":     ^TypeSet(0),
}

// table is a family of ops: one line per op, "name since | parameter … ", where a parameter is
//
//	name[?][!][*][>opset]:set[/letter]
//
// ? may be absent, ! must be constant, * takes several bindings, > only since that iOS version; set names the element types allowed
// (or state, list, anything); parameters with the same letter must have the same element type.
type table []line

type line struct {
	text  string
	infer inferFunc
}

// signatures holds all ops by type, oldest form first.
var signatures = func() map[string][]*Signature {
	all := map[string][]*Signature{}
	for _, family := range []table{
		elementwise, reductions, convolutions, products, norms, shapes, slicing, gathering, recurrent, images, randoms,
		compressed, states, control,
	} {
		for _, l := range family {
			for _, s := range l.parse() {
				all[s.Type] = append(all[s.Type], s)
			}
		}
	}
	return all
}()

func (l line) parse() []*Signature {
	head, params, _ := strings.Cut(l.text, "|")
	words := strings.Fields(head)
	since := words[len(words)-1]
	var list []*Signature
	for _, name := range words[:len(words)-1] {
		s := &Signature{Type: name, Since: opsetOfSystem(since), infer: l.infer}
		for _, p := range strings.Fields(params) {
			s.Params = append(s.Params, parseParam(p))
		}
		list = append(list, s)
	}
	return list
}

func parseParam(text string) Param {
	name, set, _ := strings.Cut(text, ":")
	set, letter, _ := strings.Cut(set, "/")
	p := Param{Kind: Tensor, Since: CoreML5}
	if letter != "" {
		p.Group = letter[0]
	}
	switch set {
	case "state":
		p.Kind = State
	case "list":
		p.Kind = List
	case "buffer":
		p.Kind = Buffer
	case "anything":
		p.Kind = 0
	default:
		if p.Types = typeSets[set]; p.Types == 0 {
			panic("mil: op table: no set of types is called " + set)
		}
	}
	if i := strings.IndexByte(name, '>'); i >= 0 {
		p.Since, name = opsetOfSystem(name[i+1:]), name[:i]
	}
	p.Name = strings.TrimRight(name, "?!*")
	flags := name[len(p.Name):]
	p.Optional = Presence(strings.Contains(flags, "?"))
	p.Const = Constancy(strings.Contains(flags, "!"))
	if strings.Contains(flags, "*") {
		p.Arity = Many
	}
	return p
}

func opsetOfSystem(version string) Opset {
	o, ok := ParseOpset("ios" + version)
	if !ok {
		panic("mil: op table: no opset of iOS " + version)
	}
	return o
}

// Lookup finds the form that an op type has in an opset. If there is none, the error says whether the op is newer or unknown.
func Lookup(opType string, opset Opset) (*Signature, error) {
	forms := signatures[opType]
	if len(forms) == 0 {
		return nil, ErrUnknownOp
	}
	for _, s := range slices.Backward(forms) {
		if s.Since <= opset {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%w: since %s", ErrOpTooNew, forms[0].Since)
}

// OpTypes are the names of all known ops, sorted.
func OpTypes() []string {
	var names []string
	for name := range signatures {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Param finds a parameter by name; nil if there is none.
func (s *Signature) Param(name string) *Param {
	for i := range s.Params {
		if s.Params[i].Name == name {
			return &s.Params[i]
		}
	}
	return nil
}
