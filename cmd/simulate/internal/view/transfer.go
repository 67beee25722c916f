package view

import (
	"anelab/anesim"
	"anelab/cmd/simulate/internal/texttab"
)

// Transfer is a device made from a relative and a few calls.
type Transfer struct {
	Device
	From  anesim.Device
	Calls int
	Fit   anesim.Stats // of the calls, the session's factor forgiven
	Notes []string
}

// Page lists the constants beside those of the relative.
func (r *Transfer) Page(p *texttab.Page) {
	d := &r.Device.Device
	p.Head(d.Name, d.Title, plural(r.Calls, "timed call"), "from "+r.From.Name)
	p.Gap()
	t := texttab.NewTable(texttab.L("constant"), texttab.R("value"), texttab.R("± sd"), texttab.R(r.From.Name), texttab.L("unit"), texttab.L("sure"))
	for k := range anesim.NumTerms {
		c := &d.Constants[k]
		value, sd, unit := scaled(c.Value, c.SD, c.Unit)
		was, _, _ := scaled(r.From.Constants[k].Value, 0, c.Unit)
		t.Row(k.String(), value, sd, was, unit, c.Confidence)
	}
	p.Table(t)
	p.Gap()
	for _, n := range r.Notes {
		p.Line("%s", n)
	}
	p.Answer("%s%% median, %s%% at most: what the fit misses of its own calls, the session's pace forgiven", percentText(r.Fit.Median), percentText(r.Fit.Max))
}

// Document is that of the device, with the fit.
func (r *Transfer) Document() any {
	return struct {
		Device any          `json:"device"`
		From   string       `json:"from"`
		Calls  int          `json:"calls"`
		Fit    anesim.Stats `json:"fit"`
		Notes  []string     `json:"notes"`
	}{r.Device.Document(), r.From.Name, r.Calls, r.Fit, append([]string{}, r.Notes...)}
}
