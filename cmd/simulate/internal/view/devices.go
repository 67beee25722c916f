package view

import (
	"fmt"
	"strings"

	"anelab/anesim"
	"anelab/cmd/simulate/internal/texttab"
)

// Devices is the list of devices.
type Devices struct {
	Made        Made
	Devices     []anesim.Device
	Default     string
	DefaultFrom string // environment variable, if it says so
}

// Page is one line per device.
func (r *Devices) Page(p *texttab.Page) {
	t := texttab.NewTable(texttab.L("device"), texttab.L("title"), texttab.R("sessions"), texttab.R("rows"), texttab.L("contexts"), texttab.R("worst miss"))
	for i := range r.Devices {
		d := &r.Devices[i]
		name, miss := d.Name, "–"
		if name == r.Default {
			name += " *"
		}
		if d.Evidence.Experiments > 1 {
			miss = fmt.Sprintf("%.1f%%", 100*d.Evidence.WorstMiss)
		}
		t.Row(name, d.Title, fmt.Sprint(d.Evidence.Experiments), fmt.Sprint(d.Evidence.Rows), contextList(d), miss)
	}
	p.Table(t)
	p.Gap()
	from := ""
	if r.DefaultFrom != "" {
		from = " (from " + r.DefaultFrom + ")"
	}
	p.Line("0 sessions: never measured; constants are priors from published figures, ranges are wide")
	p.Line("* default: %s%s", r.Default, from)
	p.Line("constants of one device: simulate devices NAME")
}

func contextList(d *anesim.Device) string {
	text := ""
	for i, k := range d.Evidence.Contexts {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprint(k.Context)
	}
	return text
}

// deviceSummary is one device of the list.
type deviceSummary struct {
	Name        string  `json:"name"`
	Title       string  `json:"title"`
	Class       string  `json:"class"`
	SoC         string  `json:"soc"`
	Experiments int     `json:"experiments"`
	Rows        int     `json:"rows"`
	Contexts    []int   `json:"contexts"`
	WorstMiss   float64 `json:"worst_miss"`
	Default     bool    `json:"default"`
}

// Document is the list.
func (r *Devices) Document() any {
	all := []deviceSummary{}
	for i := range r.Devices {
		d := &r.Devices[i]
		s := deviceSummary{d.Name, d.Title, string(d.Class), d.SoC, d.Evidence.Experiments, d.Evidence.Rows, []int{}, d.Evidence.WorstMiss, d.Name == r.Default}
		for _, k := range d.Evidence.Contexts {
			s.Contexts = append(s.Contexts, k.Context)
		}
		all = append(all, s)
	}
	return struct {
		Made
		Devices []deviceSummary `json:"devices"`
	}{r.Made, all}
}

// Header of the records.
func (r *Devices) Header() []string {
	return []string{"device", "title", "class", "soc", "experiments", "rows", "worst_miss"}
}

// Records are the devices.
func (r *Devices) Records() [][]string {
	var all [][]string
	for i := range r.Devices {
		d := &r.Devices[i]
		all = append(all, []string{d.Name, d.Title, string(d.Class), d.SoC, fmt.Sprint(d.Evidence.Experiments), fmt.Sprint(d.Evidence.Rows), exact(d.Evidence.WorstMiss)})
	}
	return all
}

// Device is one device with its constants.
type Device struct {
	Made   Made
	Device anesim.Device
}

// Page lists the constants and what they rest on.
func (r *Device) Page(p *texttab.Page) {
	d := &r.Device
	p.Head(d.Name, d.Title, d.SoC, string(d.Class))
	p.Gap()
	t := texttab.NewTable(texttab.L("constant"), texttab.R("value"), texttab.R("± sd"), texttab.L("unit"), texttab.L("sure"), texttab.F("multiplied by"))
	for k := range anesim.NumTerms {
		c := &d.Constants[k]
		value, sd, unit := scaled(c.Value, c.SD, c.Unit)
		t.Row(k.String(), value, sd, unit, c.Confidence, k.Quantity())
	}
	p.Table(t)
	p.Gap()
	e := &d.Evidence
	if e.Experiments == 0 {
		p.Line("never measured: every constant is its prior")
		return
	}
	miss := fmt.Sprintf("worst miss of a session left out %.1f%%", 100*e.WorstMiss)
	if e.Experiments == 1 {
		miss = "none was left to test it on"
	}
	p.Line("fitted on %s, %d rows; %s; 90%% ranges reach %s standard deviations", plural(e.Experiments, "session"), e.Rows, miss, sig(e.IntervalFactor))
	p.Line("sources and priors of every constant: simulate devices %s --format json", d.Name)
}

// scaled writes a constant at a readable scale.
func scaled(value, sd float64, unit string) (string, string, string) {
	scale, unit := scaleOf(unit)
	return sig(scale * value), sig(scale * sd), unit
}

// scaleOf is the unit that a constant is read in: seconds per byte as ps per byte have ten zeros less.
func scaleOf(unit string) (float64, string) {
	switch {
	case unit == "s/byte":
		return 1e12, "ps/byte"
	case unit == "s/position":
		return 1e9, "ns/position"
	case strings.HasPrefix(unit, "s/"):
		return 1e3, "m" + unit
	}
	return 1, unit
}

// deviceConstant is a constant with its name.
type deviceConstant struct {
	Name       string  `json:"name"`
	Value      float64 `json:"value"`
	SD         float64 `json:"sd"`
	Unit       string  `json:"unit"`
	Quantity   string  `json:"quantity"`
	Source     string  `json:"source"`
	Confidence string  `json:"confidence"`
	Group      string  `json:"group"`
	Prior      float64 `json:"prior"`
	PriorSD    float64 `json:"prior_sd"`
	PriorFrom  string  `json:"prior_source"`
}

func (r *Device) constants() []deviceConstant {
	var all []deviceConstant
	for k := range anesim.NumTerms {
		c := &r.Device.Constants[k]
		all = append(all, deviceConstant{k.String(), c.Value, c.SD, c.Unit, k.Quantity(), c.Source, c.Confidence, c.Group, c.Prior.Value, c.Prior.SD, c.Prior.Source})
	}
	return all
}

// Document has sources and priors too.
func (r *Device) Document() any {
	d := &r.Device
	measured := d.Evidence.Chunks
	if measured == nil {
		measured = []anesim.MeasuredChunk{}
	}
	return struct {
		Made
		Name      string                 `json:"name"`
		Title     string                 `json:"title"`
		Class     string                 `json:"class"`
		SoC       string                 `json:"soc"`
		Constants []deviceConstant       `json:"constants"`
		Measured  []anesim.MeasuredChunk `json:"measured"`
	}{r.Made, d.Name, d.Title, string(d.Class), d.SoC, r.constants(), measured}
}

// Header of the records.
func (r *Device) Header() []string {
	return []string{"constant", "value", "sd", "unit", "confidence", "group", "source"}
}

// Records are the constants.
func (r *Device) Records() [][]string {
	var all [][]string
	for _, c := range r.constants() {
		all = append(all, []string{c.Name, exact(c.Value), exact(c.SD), c.Unit, c.Confidence, c.Group, c.Source})
	}
	return all
}
