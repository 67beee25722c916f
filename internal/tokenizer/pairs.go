package tokenizer

// pairTable maps two ids to what they merge to. Open addressing with linear probing: a lookup is one multiplication and, at a load
// of at most one half, one or two cache lines.
type pairTable struct {
	keys   []uint64 // left<<32 | right, plus 1; 0 = empty
	merged []merged
	shift  uint
}

type merged struct{ rank, id int32 }

// none is the rank of a pair that does not merge.
const none = int32(1<<31 - 1)

func newPairTable(n int) *pairTable {
	bits := uint(4)
	for 1<<bits < 2*n {
		bits++
	}
	return &pairTable{keys: make([]uint64, 1<<bits), merged: make([]merged, 1<<bits), shift: 64 - bits}
}

// slot is where a key is, or where it belongs. Fibonacci hashing: the high bits of key·2⁶⁴/φ.
func (t *pairTable) slot(key uint64) int {
	i := int(key * 0x9E3779B97F4A7C15 >> t.shift)
	for t.keys[i] != 0 && t.keys[i] != key {
		i = (i + 1) & (len(t.keys) - 1)
	}
	return i
}

// add keeps the first of two entries for one pair.
func (t *pairTable) add(left, right int32, m merged) {
	key := uint64(uint32(left))<<32 | uint64(uint32(right)) + 1
	if i := t.slot(key); t.keys[i] == 0 {
		t.keys[i], t.merged[i] = key, m
	}
}

func (t *pairTable) find(left, right int32) merged {
	i := t.slot(uint64(uint32(left))<<32 | uint64(uint32(right)) + 1)
	if t.keys[i] == 0 {
		return merged{rank: none}
	}
	return t.merged[i]
}

// neighbours is the set of character pairs that stand side by side in some piece that merging can make.
type neighbours struct {
	ascii [128][2]uint64 // bit b of row a
	other *pairTable
}

// newNeighbours gathers the pairs of what merges make.
func newNeighbours(v *Vocabulary) *neighbours {
	seen := map[[2]rune]bool{}
	for _, m := range v.Merges {
		before := rune(-1)
		for _, c := range v.Pieces[m.Result] {
			if before >= 0 {
				seen[[2]rune{before, c}] = true
			}
			before = c
		}
	}
	n := &neighbours{other: newPairTable(len(seen))}
	for p := range seen {
		if a, b := asciiOf(p[0]), asciiOf(p[1]); a < 128 && b < 128 {
			n.ascii[a][b>>6] |= 1 << (b & 63)
		} else {
			n.other.add(p[0], p[1], merged{})
		}
	}
	return n
}

// asciiOf puts the piece's space where the text's space is.
func asciiOf(c rune) rune {
	if c == space {
		return ' '
	}
	return c
}

// has reports whether some merge may join a piece that ends in a with one that begins with b.
func (n *neighbours) has(a, b rune) bool {
	a, b = asciiOf(a), asciiOf(b)
	if a < 128 && b < 128 {
		return n.ascii[a][b>>6]&(1<<(b&63)) != 0
	}
	return n.other.find(symbolOf(a), symbolOf(b)).rank != none
}

// symbolOf is the character that pieces write for a character of the text.
func symbolOf(c rune) rune {
	if c == ' ' {
		return space
	}
	return c
}
