package ledger

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/anesim"
	"anelab/anesim/devices"
	"anelab/anesim/evidence"
	"anelab/chunking"
	"anelab/gemma4"
	"anelab/internal/shareddata"
)

func bench(t testing.TB, device string) *Bench { return benchOf(t, "e2b", device) }

func benchOf(t testing.TB, model, device string) *Bench {
	path := filepath.Join(shareddata.ModuleRoot(t), "testdata", "configs", model+".json")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	cfg, err := gemma4.ParseConfig(path, data)
	require.NoError(t, err)
	m, err := chunking.NewModel(cfg)
	require.NoError(t, err)
	d, err := devices.Load(device)
	require.NoError(t, err)
	return &Bench{Model: m, Device: d}
}

// techniques that the ledger must not miss.
var techniques = []string{
	"chunks-3", "chunks-2", "chunks-1", "lite-2chunk", "stateless", "mlstate", "mlstate-32-heads", "wfa", "flash-decoding", "duoattention",
	"streamingllm", "block-topk", "minicache", "palu", "int8-kv", "int4-g32", "int8", "w8a8", "w2-w3", "int8-lut", "sparse-palettes", "eagle-3",
	"medusa", "mtp", "redrafter", "prompt-lookup", "suffix-decoding", "layerskip", "cross-vocabulary", "kv-share-batching", "native-softmax",
	"head-16way", "argmax-on-cpu", "vocabulary-pruning", "enumerated-shapes", "prefix-cache", "gpu-prefill", "prefill-512", "prefill-1024",
	"ane-gpu-pipelining", "double-buffered-kv", "mask-preallocation", "iosurface-buffers",
}

// invariant: every technique is there, with a verdict and its ground; every effect named exists, and every effect is named.
func TestLedgerIsComplete(t *testing.T) {
	byID := map[string]Entry{}
	named := map[string]bool{}
	for _, e := range Entries() {
		require.NotContains(t, byID, e.ID)
		byID[e.ID] = e
		for _, text := range []string{e.Name, e.Claim, e.Ground, e.Advice} {
			require.NotEmpty(t, text, e.ID)
		}
		require.Contains(t, []Verdict{Priced, Reference, Rule, Unmeasured}, e.Verdict, e.ID)
		require.Len(t, e.Measured(), len(e.Effects), "%s names an effect that does not exist", e.ID)
		if e.Verdict == Unmeasured {
			require.Empty(t, e.Effects, "%s was measured", e.ID)
		}
		for _, id := range e.Effects {
			named[id] = true
		}
	}
	for _, id := range techniques {
		require.Contains(t, byID, id)
	}
	for _, e := range evidence.Effects() {
		require.True(t, named[e.ID], "no technique names %s", e.ID)
	}
	t.Logf("%d techniques, %d effects", len(byID), len(named))
}

// invariant: forecasts can be made on every device, and ranges hold their middle.
func TestForecasts(t *testing.T) {
	for _, device := range []string{"iphone17pro", "mac", "a18pro"} {
		b := bench(t, device)
		for _, e := range Entries() {
			f, err := e.Forecast(b)
			require.NoError(t, err, e.ID)
			require.NotEmpty(t, f.Text, e.ID)
			require.LessOrEqual(t, f.Range.Lo, f.Seconds+1e-12, e.ID)
			require.LessOrEqual(t, f.Seconds, f.Range.Hi+1e-12, e.ID)
			if e.Verdict == Priced {
				require.NotEqual(t, None, f, "%s is priced by what?", e.ID)
			}
			if device == "iphone17pro" {
				t.Logf("%-20s %+6.1f ms (%+.1f to %+.1f) of %s: %s", e.ID, 1e3*f.Seconds, 1e3*f.Range.Lo, 1e3*f.Range.Hi, f.Of, f.Text)
			}
		}
	}
}

// invariant: the ledger is of the model at hand, not of E2B's cuts; four bits instead of sixteen save in step with the weights.
func TestForecastsOfOtherModels(t *testing.T) {
	saved := map[string]float64{}
	for _, model := range []string{"e2b", "e4b", "31b"} {
		b := benchOf(t, model, "iphone17pro")
		for _, e := range Entries() {
			f, err := e.Forecast(b)
			require.NoError(t, err, "%s of %s", e.ID, model)
			require.NotEmpty(t, f.Text)
			require.True(t, f.Range.Lo <= f.Seconds+1e-12 && f.Seconds <= f.Range.Hi+1e-12, "%s of %s", e.ID, model)
			if e.ID == "int4-g32" {
				saved[model] = f.Seconds
			}
			if e.ID == "chunks-3" && model == "e4b" {
				require.Less(t, f.Range.Hi, 0.0, "what is not known of a model is common to both cuts")
			}
		}
	}
	require.InDelta(t, 2.0, saved["e4b"]/saved["e2b"], 0.4)
	require.Less(t, saved["31b"], 8*saved["e2b"])
}

// oracle: effects of the phone at which a forecast can be held.
func TestForecastsAgainstEffects(t *testing.T) {
	b := bench(t, "iphone17pro")
	for _, c := range []struct{ entry, effect string }{
		{"chunks-3", "layout-4to3-iphone-tps"}, {"chunks-2", "layout-4to2-iphone-m2"}, {"iosurface-buffers", "host-iosurface-kv"}, {"mask-preallocation", "host-mask-prealloc"},
	} {
		for _, e := range Entries() {
			if e.ID != c.entry {
				continue
			}
			f, err := e.Forecast(b)
			require.NoError(t, err)
			effect, _ := evidence.FindEffect(c.effect)
			before, after, ok := effect.Times()
			require.True(t, ok)
			require.Equal(t, f.Seconds < 0, after < before, "%s has the wrong sign", c.entry)
		}
	}
}

// hand: what speculation needs follows from the length of the cycle alone.
func TestDraftsNeedAcceptance(t *testing.T) {
	b := bench(t, "mac")
	cheap, err := draft(3, 1, noDrafter, anesim.CommitAccepted)(b)
	require.NoError(t, err)
	dear, err := draft(3, 1, largeDrafter, anesim.CommitAccepted)(b)
	require.NoError(t, err)
	require.Less(t, cheap.Seconds, dear.Seconds)
	replayed, err := draft(3, 1, noDrafter, anesim.CommitAll)(b)
	require.NoError(t, err)
	require.Contains(t, replayed.Text, "never even")
}
