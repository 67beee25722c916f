package safetensors

import (
	"cmp"
	"fmt"
	"slices"

	"anelab/internal/format"
)

// checkTiling checks that spans cover size bytes of data exactly, each byte once. It sorts spans by place; a tensor without
// elements may sit at any border.
func checkTiling(path string, spans []span, size uint64) error {
	slices.SortStableFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	end, previous := uint64(0), "the start of the data"
	for _, t := range spans {
		at := fmt.Sprintf("bytes [%d, %d)", t.begin, t.end)
		switch {
		case t.begin < end:
			return &format.Error{Path: path, Field: t.name, Got: at, Want: fmt.Sprintf("no overlap with %s, which ends at byte %d", previous, end)}
		case t.begin > end:
			return &format.Error{Path: path, Field: t.name, Got: at, Want: fmt.Sprintf("no hole of %d bytes after %s", t.begin-end, previous)}
		}
		end, previous = t.end, t.name
	}
	switch {
	case end > size:
		return &format.Error{Path: path, Got: fmt.Sprintf("%d bytes of data", size), Want: fmt.Sprintf("%d, %d more", end, end-size),
			Fix: "the file is cut short: fetch it again"}
	case end < size:
		return &format.Error{Path: path, Got: fmt.Sprintf("%d bytes after the last tensor", size-end), Want: "none"}
	}
	return nil
}
