package golden

import (
	"fmt"

	"anelab/gemma4"
	"anelab/parity"
)

// CheckSharing tests the reference itself: a recorded layer that shares keys and values must have used exactly those of its
// donor, which a reference run without a cache has been known not to do. checked counts the layers whose donor is recorded
// too; 0 means that this file cannot tell.
func (f *File) CheckSharing(layers []gemma4.Layer) (checked int, err error) {
	for _, c := range f.cases {
		for _, l := range layers {
			if l.OwnsKV() {
				continue
			}
			n, err := c.checkDonor(l)
			if err != nil {
				return checked, err
			}
			checked += n
		}
	}
	return checked, nil
}

func (c *Case) checkDonor(l gemma4.Layer) (checked int, err error) {
	for _, point := range []gemma4.Point{gemma4.PointK, gemma4.PointV} {
		own, _, ok := c.Tensor(fmt.Sprintf("%s.%d", point, l.Index))
		donor, _, known := c.Tensor(fmt.Sprintf("%s.%d", point, l.KVSource))
		if !ok || !known {
			continue
		}
		if d := parity.Compare(own, donor, parity.Options{}); !d.Identical() {
			return checked, c.file.error(fmt.Sprintf("%s.%s.%d", c.Name, point, l.Index), d.String(), fmt.Sprintf("the rows of its donor, layer %d", l.KVSource),
				"was the reference run without its cache? it is no reference for this architecture")
		}
		checked++
	}
	return checked, nil
}
