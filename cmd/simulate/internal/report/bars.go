package report

import (
	"fmt"
	"html/template"
	"slices"
)

// Bar is where the time of one layout goes.
type Bar struct {
	Name      string // preset or layout text
	TokPerSec float64
	Calls     []Call // the chunks, then the host
}

// Call is one chunk, or the host.
type Call struct {
	Name  string
	Parts []Part // in the order of the cost model's terms
}

// Part is the time of one resource.
type Part struct {
	Resource string
	Seconds  float64
}

// Seconds of the call.
func (c *Call) Seconds() float64 {
	var s float64
	for _, p := range c.Parts {
		s += p.Seconds
	}
	return s
}

// Of is the time of one resource.
func (c *Call) Of(resource string) float64 {
	var s float64
	for _, p := range c.Parts {
		if p.Resource == resource {
			s += p.Seconds
		}
	}
	return s
}

// Seconds of the token.
func (b *Bar) Seconds() float64 {
	var s float64
	for i := range b.Calls {
		s += b.Calls[i].Seconds()
	}
	return s
}

// resourceNames lists the resources of all bars in the order in which they come up.
func resourceNames(bars []Bar) []string {
	var all []string
	for _, b := range bars {
		for _, c := range b.Calls {
			for _, p := range c.Parts {
				if p.Seconds > 0 && !slices.Contains(all, p.Resource) {
					all = append(all, p.Resource)
				}
			}
		}
	}
	return all
}

// Places in the bar chart.
const (
	chartWidth = 860.0
	barLeft    = 210.0
	barRight   = chartWidth - 90
	barHeight  = 26.0
	barStep    = 40.0
	legendRow  = 30.0
)

// barChart draws one bar per layout, one stretch per resource of every call, and a gap between calls.
func barChart(bars []Bar) template.HTML {
	names := resourceNames(bars)
	longest := 0.0
	for i := range bars {
		longest = max(longest, bars[i].Seconds())
	}
	d := newDrawing(chartWidth, legendRow+barStep*float64(len(bars))+34, "time of one token by chunk and resource")
	legend(d, names)
	s := scale{0, longest * 1e3, barLeft, barRight}
	bottom := legendRow + barStep*float64(len(bars))
	for _, t := range ticks(0, longest*1e3, 8) {
		d.line("grid", s.at(t), legendRow, s.at(t), bottom)
		d.text("middle", s.at(t), bottom+16, short(t))
	}
	d.text("end", barRight, bottom+30, "ms per token")
	for i := range bars {
		drawBar(d, s, names, &bars[i], legendRow+barStep*float64(i)+(barStep-barHeight)/2)
	}
	return d.end()
}

func legend(d *drawing, names []string) {
	x := barLeft
	for i, name := range names {
		d.rect(colour(i), box{x, 6, 12, 12}, name)
		d.text("start", x+17, 16.5, name)
		x += 34 + 7.5*float64(len(name))
	}
}

// colour is the class of the i-th resource or series.
func colour(i int) string { return fmt.Sprintf("c%d", i%8+1) }

func drawBar(d *drawing, s scale, names []string, b *Bar, y float64) {
	d.text("end", barLeft-8, y+barHeight*0.65, clip(b.Name, 30))
	at := 0.0
	for i := range b.Calls {
		c := &b.Calls[i]
		from := at
		for k, name := range names {
			if seconds := c.Of(name); seconds > 0 {
				d.rect(colour(k), box{s.at(1e3 * at), y, s.at(1e3*(at+seconds)) - s.at(1e3*at), barHeight},
					fmt.Sprintf("%s: %s %s ms (call %s ms)", c.Name, name, milli(seconds), milli(c.Seconds())))
				at += seconds
			}
		}
		d.add(`<rect class="call" x="%s" y="%s" width="%s" height="%s"/>`, num(s.at(1e3*from)), num(y), num(s.at(1e3*at)-s.at(1e3*from)), num(barHeight))
	}
	d.text("start", s.at(1e3*at)+6, y+barHeight*0.65, sig(b.TokPerSec)+" tok/s")
}

// clip shortens a label.
func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
