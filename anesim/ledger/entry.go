package ledger

import (
	"fmt"
	"strings"

	"anelab/anesim"
	"anelab/anesim/evidence"
	"anelab/chunking"
)

// Verdict is the ground that an entry stands on.
type Verdict string

// See the package comment.
const (
	Priced     Verdict = "priced"
	Reference  Verdict = "reference"
	Rule       Verdict = "rule"
	Unmeasured Verdict = "unmeasured"
)

// Entry is one technique.
type Entry struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Claim   string   `json:"claim"`   // of its authors
	Effects []string `json:"effects"` // rows of effects.csv
	Verdict Verdict  `json:"verdict"`
	Ground  string   `json:"ground"` // the term, the policy, or the rule
	Advice  string   `json:"advice"` // in one sentence

	forecast func(*Bench) (Forecast, error)
}

// Forecast is what the model expects of a technique.
type Forecast struct {
	Seconds float64      `json:"seconds"` // change of what Of names; negative is faster
	Range   anesim.Range `json:"range90_s"`
	Of      string       `json:"of"` // "token" or "first token"
	Text    string       `json:"text"`
}

// None is the forecast of a technique that no term covers.
var None = Forecast{Of: "token", Text: "not priced"}

// Bench is what forecasts are made on.
type Bench struct {
	Model  *chunking.Model
	Device anesim.Device
}

// Forecast is what the model expects of the technique on a model and a device.
func (e *Entry) Forecast(b *Bench) (Forecast, error) {
	if e.forecast == nil {
		return None, nil
	}
	return e.forecast(b)
}

// Measured lists the rows of effects.csv behind the entry.
func (e *Entry) Measured() []evidence.Effect {
	var all []evidence.Effect
	for _, id := range e.Effects {
		if effect, ok := evidence.FindEffect(id); ok {
			all = append(all, effect)
		}
	}
	return all
}

// plan of a layout text.
func (b *Bench) plan(text string) (*chunking.Plan, error) {
	l, err := chunking.Parse(text, b.Model)
	if err != nil {
		return nil, err
	}
	return l.Plan(b.Model)
}

// change forecasts one plan turned into another.
func change(before, after string) func(*Bench) (Forecast, error) {
	return func(b *Bench) (Forecast, error) {
		p, err := b.plan(before)
		if err != nil {
			return None, err
		}
		q, err := b.plan(after)
		if err != nil {
			return None, err
		}
		s, r := anesim.Difference(p, q, b.Device, anesim.Workload{})
		return Forecast{Seconds: s, Range: r, Of: "token", Text: fmt.Sprintf("%s → %s", before, after)}, nil
	}
}

// reweighed forecasts four chunks of the model at hand in another encoding of the linears.
func reweighed(before, after string) func(*Bench) (Forecast, error) {
	return func(b *Bench) (Forecast, error) {
		four, _ := b.Model.Preset("@4way")
		in := func(encoding string) string {
			return strings.ReplaceAll(four.String(), " | ", " w="+encoding+" | ") + " w=" + encoding
		}
		return change(in(before), in(after))(b)
	}
}

// atMost forecasts a technique by the most that it can save: what full layers looking at so few positions would. It saves
// between nothing and that.
func atMost(before, after string) func(*Bench) (Forecast, error) {
	return func(b *Bench) (Forecast, error) {
		f, err := change(before, after)(b)
		f.Seconds, f.Range.Hi = f.Seconds/2, max(f.Range.Hi, 0)
		f.Text = "at most " + f.Text
		return f, err
	}
}

// kv forecasts another place for the caches by its empirical rule.
func kv(form anesim.KVForm) func(*Bench) (Forecast, error) {
	return func(b *Bench) (Forecast, error) {
		p, err := b.plan("@3way")
		if err != nil {
			return None, err
		}
		w := anesim.Workload{KV: form}
		was := anesim.Predict(p, b.Device, anesim.Workload{CopyBack: anesim.CopyBackSync})
		is := anesim.WithEmpirical(anesim.Predict(p, b.Device, w), p, b.Device, w)
		s := is.TimeS - was.TimeS
		return Forecast{Seconds: s, Range: anesim.Range{Lo: is.TimeRange.Lo - was.TimeS, Hi: is.TimeRange.Hi - was.TimeS}, Of: "token",
			Text: "explicit caches copied synchronously → " + string(form)}, nil
	}
}

// draft forecasts speculation by its break-even: how often drafts must be right.
func draft(drafts, width int, draftShare float64, commit anesim.KVCommit) func(*Bench) (Forecast, error) {
	return func(b *Bench) (Forecast, error) {
		p, err := b.plan("@3way")
		if err != nil {
			return None, err
		}
		step := anesim.Predict(p, b.Device, anesim.Workload{}).TimeS
		x, err := anesim.PredictSpeculation(p, b.Device, anesim.Speculation{Drafts: drafts, DraftSeconds: draftShare * step,
			Acceptance: anesim.Acceptance{PerPosition: []float64{0.5}, Width: width}, Commit: commit})
		if err != nil {
			return None, err
		}
		text := "never even: each accepted token is computed again"
		if x.BreakEven != nil {
			text = fmt.Sprintf("even at %.0f %% acceptance per position; %.2f times at 50 %%", 100**x.BreakEven, x.Gain)
		}
		return Forecast{Seconds: 1/x.TokPerSec - step, Range: anesim.Range{Lo: 1/x.Range.Hi - step, Hi: 1/x.Range.Lo - step}, Of: "token", Text: text}, nil
	}
}

// promptChange forecasts the time to the first token of a 400-token prompt taken in another way.
func promptChange(before, after anesim.Prompt) func(*Bench) (Forecast, error) {
	return func(b *Bench) (Forecast, error) {
		p, err := b.plan("@4way")
		if err != nil {
			return None, err
		}
		x, y := anesim.PredictPrefill(p, b.Device, before), anesim.PredictPrefill(p, b.Device, after)
		return Forecast{Seconds: y.TimeS - x.TimeS, Range: anesim.Range{Lo: y.TimeRange.Lo - x.TimeRange.Hi, Hi: y.TimeRange.Hi - x.TimeRange.Lo}, Of: "first token",
			Text: fmt.Sprintf("%.2f s → %.2f s for %d tokens", x.TimeS, y.TimeS, after.Tokens)}, nil
	}
}

// fixed is a forecast that was measured and that no quantity of a plan scales.
func fixed(seconds, half float64, text string) func(*Bench) (Forecast, error) {
	return func(*Bench) (Forecast, error) {
		return Forecast{Seconds: seconds, Range: anesim.Range{Lo: seconds - half, Hi: seconds + half}, Of: "token", Text: text}, nil
	}
}
