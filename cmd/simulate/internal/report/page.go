package report

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
)

//go:embed page.html page.css page.js
var files embed.FS

// Page is everything that a report shows. Times are seconds, sizes bytes.
type Page struct {
	Tool     string // that made it: "simulate 0.1.0"
	Command  string
	Model    string
	Layers   int
	Device   string
	Hash     string // of the device file
	Verdict  string // the sentence that the page is about
	Basis    string // what ranges rest on
	Warnings []string

	Rankings  []Ranking // the one that the verdict is about first
	Bars      []Bar     // at BarContext
	Front     []FrontPoint
	FrontNote string
	Residuals []Residual // of measured chunks, each predicted without its session
	Coverage  float64    // of their ranges, %; NaN without residuals
	Grid      Grid

	Context int // that bars and front are of
}

// Ranking is the best layouts at one context.
type Ranking struct {
	Context int
	Priced  int
	Open    bool // shown without being asked for
	Rows    []Row
}

// Row is one layout of a ranking.
type Row struct {
	Rank       string
	Layout     string
	TokPerSec  float64
	Lo, Hi     float64 // 90 % range
	BoundBy    string
	BoundShare float64
}

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	t, err := template.New("page.html").Funcs(template.FuncMap{"sig": sig, "ms": milli, "mb": mega, "pct": percent}).ParseFS(files, "page.html")
	if err != nil {
		return err
	}
	parts, err := p.parts()
	if err != nil {
		return err
	}
	return t.Execute(w, parts)
}

// parts are what the template cannot make itself.
type parts struct {
	*Page
	CSS                                 template.CSS
	JS                                  template.JS
	GridJSON                            template.JS
	BarChart, FrontChart, ResidualChart template.HTML
	ResourceNames                       []string
	Inside                              int
}

func (p *Page) parts() (*parts, error) {
	css, err := files.ReadFile("page.css")
	if err != nil {
		return nil, err
	}
	js, err := files.ReadFile("page.js")
	if err != nil {
		return nil, err
	}
	grid, err := json.Marshal(p.Grid)
	if err != nil {
		return nil, err
	}
	out := &parts{Page: p, CSS: template.CSS(css), JS: template.JS(js), GridJSON: template.JS(grid), ResourceNames: resourceNames(p.Bars)}
	out.BarChart, out.FrontChart, out.ResidualChart = barChart(p.Bars), frontChart(p.Front), residualChart(p.Residuals)
	for _, r := range p.Residuals {
		if r.Inside {
			out.Inside++
		}
	}
	return out, nil
}

// sig writes three significant digits.
func sig(x float64) string {
	switch {
	case x >= 99.95:
		return fmt.Sprintf("%.0f", x)
	case x >= 9.995:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

func milli(seconds float64) string { return sig(1e3 * seconds) }

func mega(bytes float64) string { return fmt.Sprintf("%.0f", bytes/1e6) }

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
