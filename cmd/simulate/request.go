package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"anelab/anesim"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/view"
)

type requestOptions struct {
	output    outputFlags
	subject   subjectFlags
	workload  workloadFlags
	prompt    int
	rows      int
	cached    int
	engine    choice
	functions int
	resident  bool
	drafts    int
	width     int
	draftMs   float64
	accept    rates
	replay    bool
	layout    string
}

func newRequestCmd(c *console.Console) *cobra.Command {
	o := &requestOptions{accept: rates{0.5}}
	cmd := &cobra.Command{
		Use:   "request LAYOUT",
		Short: "First token, memory, drafts and energy of a layout",
		Long: `Price what a whole request costs around the decode step that plan prices: the
time to the first token of a prompt, memory and download, decoding with drafts
that a verify call checks, and energy. Little of it was measured: ranges are
wide, and every part names what it rests on.`,
		Example: `  simulate request @3way --prompt 400 --prefill 512
  simulate request @4way --prompt 400 --cached 380
  simulate request @3way --drafts 3 --accept 0.7,0.5 --draft-time 2.5`,
		Args:              layoutArgs(1),
		ValidArgsFunction: completeLayouts(1),
		RunE: func(_ *cobra.Command, args []string) error {
			o.layout = args[0]
			return runRequest(c, o)
		},
	}
	o.subject.add(cmd)
	o.workload.add(cmd)
	f := cmd.Flags()
	f.IntVar(&o.prompt, "prompt", 400, "tokens of the prompt")
	f.IntVar(&o.rows, "prefill", 0, "rows of batched prefill programs, such as 512 (default 0: every token is a decode step)")
	f.IntVar(&o.cached, "cached", 0, "leading tokens of the prompt whose caches are restored")
	o.engine = choice{string(anesim.EngineANE), []string{string(anesim.EngineANE), string(anesim.EngineGPU)}, "ENGINE"}
	addChoice(cmd, "engine", "what batched prefill runs on", &o.engine)
	f.IntVar(&o.functions, "functions", 1, "functions loaded per chunk; each has its own copy of the weights")
	f.BoolVar(&o.resident, "tables-resident", false, "embedding tables are read into memory, not mapped")
	f.IntVar(&o.drafts, "drafts", 0, "tokens drafted per cycle (default 0: plain decode)")
	f.IntVar(&o.width, "width", 1, "candidates per drafted position; 1 is a chain")
	f.Float64Var(&o.draftMs, "draft-time", 0, "`MS` per cycle that the drafter takes")
	f.Var(&o.accept, "accept", "chance that each drafted position is accepted; the last one holds for all further; or the JSON of simulate draft")
	f.BoolVar(&o.replay, "write-through", false, "verify writes rejected rows into the caches: accepted tokens are computed again")
	o.output.add(cmd, "text", "json", "csv", "markdown")
	return cmd
}

// rates is a flag of probabilities.
type rates []float64

func (r *rates) String() string {
	var parts []string
	for _, x := range *r {
		parts = append(parts, strconv.FormatFloat(x, 'g', -1, 64))
	}
	return strings.Join(parts, ",")
}

// Set reads 0.7,0.5, or the acceptance that simulate draft wrote as JSON.
func (r *rates) Set(text string) error {
	if strings.HasSuffix(text, ".json") {
		return r.read(text)
	}
	var all rates
	for _, part := range strings.Split(text, ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || !(x >= 0 && x <= 1) {
			return fmt.Errorf("want chances from 0 to 1, such as 0.7,0.5, or the JSON of simulate draft")
		}
		all = append(all, x)
	}
	*r = all
	return nil
}

// read takes the acceptance of a measured profile.
func (r *rates) read(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return reason(err)
	}
	var measured struct {
		Acceptance []float64 `json:"acceptance"`
	}
	if err := json.Unmarshal(text, &measured); err != nil || len(measured.Acceptance) == 0 {
		return fmt.Errorf("no acceptance in it; want the result of simulate draft --format json")
	}
	for _, x := range measured.Acceptance {
		if !(x >= 0 && x <= 1) {
			return fmt.Errorf("acceptance %v; want chances from 0 to 1", x)
		}
	}
	*r = measured.Acceptance
	return nil
}

// Type is the placeholder in help.
func (r *rates) Type() string { return "P,…" }

func runRequest(c *console.Console, o *requestOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	s, err := o.subject.resolve(c)
	if err != nil {
		return err
	}
	plan, err := o.workload.plan(c, o.layout, s.model)
	if err != nil {
		return err
	}
	r := &view.Request{Made: made(c), Source: s.source(), Plan: plan, Decode: anesim.Predict(plan, s.device, o.workload.workload()),
		Tokens: o.prompt, First: anesim.PredictPrefill(plan, s.device, anesim.Prompt{Tokens: o.prompt, Rows: o.rows, Cached: o.cached, Engine: anesim.Engine(o.engine.value)}),
		Memory: anesim.MemoryOf(plan, o.load()), Energy: anesim.PredictEnergy(plan)}
	if o.drafts > 0 {
		x, err := anesim.PredictSpeculation(plan, s.device, o.speculation())
		if err != nil {
			return usageError{err}
		}
		r.Drafts, r.Speculated = o.drafts, &x
	}
	warn(c, r.Decode.Warnings)
	return o.output.emit(c, r)
}

func (o *requestOptions) check() error {
	switch {
	case o.prompt < 1 || o.prompt > maxLength:
		return usagef("--prompt %d: want 1 to %d tokens", o.prompt, maxLength)
	case o.cached < 0 || o.cached > o.prompt:
		return usagef("--cached %d: want 0 to the %d tokens of the prompt", o.cached, o.prompt)
	case o.rows < 0 || o.rows > maxLength:
		return usagef("--prefill %d: want 0 to %d rows", o.rows, maxLength)
	case o.functions < 1 || o.functions > maxFunctions:
		return usagef("--functions %d: want 1 to %d", o.functions, maxFunctions)
	case o.drafts < 0 || o.drafts > maxDrafts || o.width < 1 || o.width > maxDrafts:
		return usagef("--drafts %d --width %d: want up to %d drafts of 1 to %d candidates", o.drafts, o.width, maxDrafts, maxDrafts)
	}
	return nil
}

// Far above anything that was tried.
const (
	maxFunctions = 64
	maxDrafts    = 64
)

func (o *requestOptions) load() anesim.Load {
	l := anesim.Load{Functions: o.functions, PrefillRows: o.rows}
	if o.resident {
		l.Tables = anesim.TablesResident
	}
	return l
}

func (o *requestOptions) speculation() anesim.Speculation {
	x := anesim.Speculation{Drafts: o.drafts, DraftSeconds: o.draftMs / 1e3, Acceptance: anesim.Acceptance{PerPosition: o.accept, Width: o.width}}
	if o.replay {
		x.Commit = anesim.CommitAll
	}
	return x
}
