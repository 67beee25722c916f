package report

// Grid is prices for every combination of some settings, computed before: the page looks them up.
type Grid struct {
	Layouts  []string `json:"layouts"`
	Weights  []string `json:"weights"`
	CopyBack []string `json:"copyback"`
	Contexts []int    `json:"contexts"`
	Start    int      `json:"-"` // context that the slider stands at
	// Cells are in the order layout, weights, copy-back, context; each is tok/s, its range, and what bounds it. Rates are
	// rounded: a page does not need more.
	Cells []Cell `json:"cells"`
}

// Cell is one price.
type Cell struct {
	Rate   float64 `json:"r"`
	Lo     float64 `json:"l"`
	Hi     float64 `json:"h"`
	Bound  string  `json:"b"`
	Refuse string  `json:"n,omitempty"` // rules that stand against it
}

// At is the cell of one combination.
func (g *Grid) At(layout, weights, copyBack, context int) *Cell {
	return &g.Cells[((layout*len(g.Weights)+weights)*len(g.CopyBack)+copyBack)*len(g.Contexts)+context]
}

// LastContext is the last position of the slider.
func (g Grid) LastContext() int { return len(g.Contexts) - 1 }

// GridRow is a row of the table that stands for the sliders where there are none: one layout with the default settings.
type GridRow struct {
	Layout  string
	Weights string
	Rates   []string
}

// Rows are the rates over contexts for every layout and encoding, with the first copy-back.
func (g Grid) Rows() []GridRow {
	var all []GridRow
	for l, layout := range g.Layouts {
		for w, weights := range g.Weights {
			row := GridRow{Layout: layout, Weights: weights}
			for c := range g.Contexts {
				x := g.At(l, w, 0, c)
				row.Rates = append(row.Rates, sig(x.Rate)+" ("+sig(x.Lo)+"–"+sig(x.Hi)+")")
			}
			all = append(all, row)
		}
	}
	return all
}
