package swa

// Form says how a store keeps rows in fewer bits than the mode computes in. The zero value keeps them as they are. A form is the
// property of the store: every layer that reads it reads what its owner's form left (KVS-05).
type Form struct {
	Bytes  bool // one signed byte a number, a scale per head row
	Bits   int  // of a code in groups of positions; with Group
	Group  int  // positions per key scale, channels per value scale; 0 = no groups
	Recent int  // newest positions that groups leave alone
	Rank   int  // rows as coordinates of so many directions; 0 = all of them
	Like   int  // direction of the rows of that layer, and an own length; counted from 1, 0 = none
}

// HeadBytes is what one position of one head takes, keys and values together, where the exact row takes 2·d numbers of
// elemBytes. Scales, offsets and lengths are two bytes each; codes are counted packed.
func (f Form) HeadBytes(d, elemBytes int) float64 {
	const two = 2
	switch {
	case f.Bytes:
		return float64(2*d + 2*two)
	case f.Group > 0:
		codes := float64(2*d*f.Bits) / 8
		keyScales := float64(2*two*d) / float64(f.Group)
		valueScales := float64(2*two) * float64((d+f.Group-1)/f.Group)
		return codes + keyScales + valueScales
	case f.Rank > 0:
		return float64(2 * min(f.Rank, d) * elemBytes)
	case f.Like > 0:
		return 2 * two
	}
	return float64(2 * d * elemBytes)
}
