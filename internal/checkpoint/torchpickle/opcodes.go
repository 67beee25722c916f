package torchpickle

// argForm is the form of an opcode's argument: a fixed number of bytes, or one of the constants below.
type argForm int

const (
	line     argForm = -1 - iota // text up to a newline
	twoLines                     // module and name
	count1                       // a length of 1, 4 or 8 bytes, then that many
	count4
	count8
)

// effect is what an opcode does to the strings on top of the stack.
type effect uint8

const (
	buries     effect = iota // pushes or builds something that is no string
	noEffect                 // leaves the stack alone
	pushesText               // pushes its argument
	toMemo                   // memoises the top
	fromMemo                 // pushes a memo entry
	namesClass               // replaces names by a class
)

type opcode struct {
	name   string
	arg    argForm
	effect effect
}

// Opcodes that scan treats one by one.
const (
	opMark     = '('
	opTuple    = 't'
	opSetItems = 'u'
	opAppends  = 'e'
	opBuild    = 'b'
	opStop     = '.'
	opGlobal   = 'c'
	opFrame    = 0x95
)

// opcodes are those torch.save writes for a dict of tensors in protocols 1 to 5.
var opcodes = map[byte]opcode{
	opMark: {name: "MARK"}, opStop: {name: "STOP"}, 'N': {name: "NONE"}, 0x88: {name: "NEWTRUE"}, 0x89: {name: "NEWFALSE"},
	'I': {"INT", line, buries}, 'J': {"BININT", 4, buries}, 'K': {"BININT1", 1, buries}, 'M': {"BININT2", 2, buries},
	'L': {"LONG", line, buries}, 0x8a: {"LONG1", count1, buries}, 'G': {"BINFLOAT", 8, buries},
	'X': {"BINUNICODE", count4, pushesText}, 0x8c: {"SHORT_BINUNICODE", count1, pushesText}, 0x8d: {"BINUNICODE8", count8, pushesText},
	'U': {"SHORT_BINSTRING", count1, pushesText},
	'}': {name: "EMPTY_DICT"}, ']': {name: "EMPTY_LIST"}, ')': {name: "EMPTY_TUPLE"}, opTuple: {name: "TUPLE"},
	0x85: {name: "TUPLE1"}, 0x86: {name: "TUPLE2"}, 0x87: {name: "TUPLE3"},
	's': {name: "SETITEM"}, opSetItems: {name: "SETITEMS"}, 'a': {name: "APPEND"}, opAppends: {name: "APPENDS"},
	'q': {"BINPUT", 1, toMemo}, 'r': {"LONG_BINPUT", 4, toMemo}, 0x94: {"MEMOIZE", 0, toMemo},
	'h': {"BINGET", 1, fromMemo}, 'j': {"LONG_BINGET", 4, fromMemo},
	opGlobal: {"GLOBAL", twoLines, namesClass}, 0x93: {"STACK_GLOBAL", 0, namesClass},
	'Q': {name: "BINPERSID"}, 'R': {name: "REDUCE"}, opBuild: {name: "BUILD"},
	0x80: {"PROTO", 1, noEffect}, opFrame: {"FRAME", 8, noEffect},
}

// refusedNames are the other opcodes of the pickle machine.
var refusedNames = map[byte]string{
	'0': "POP", '1': "POP_MARK", '2': "DUP", 'F': "FLOAT", 'P': "PERSID", 'S': "STRING", 'T': "BINSTRING", 'V': "UNICODE",
	'd': "DICT", 'g': "GET", 'i': "INST", 'l': "LIST", 'o': "OBJ", 'p': "PUT", 0x81: "NEWOBJ", 0x82: "EXT1", 0x83: "EXT2",
	0x84: "EXT4", 0x8b: "LONG4", 'B': "BINBYTES", 'C': "SHORT_BINBYTES", 0x8e: "BINBYTES8", 0x8f: "EMPTY_SET", 0x90: "ADDITEMS",
	0x91: "FROZENSET", 0x92: "NEWOBJ_EX", 0x96: "BYTEARRAY8", 0x97: "NEXT_BUFFER", 0x98: "READONLY_BUFFER",
}
