package packed

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/arith"
)

// chosen is a file with one small tensor whose directory says the choices word for word.
func chosen(t *testing.T, words map[string]string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.anelab")
	w, err := Create(path, []byte(`{}`))
	require.NoError(t, err)
	require.NoError(t, w.Dense(vector("norm.weight", 5)))
	w.dir.Choices = words
	require.NoError(t, w.Commit())
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

func TestChoicesComeBack(t *testing.T) { // invariant, each alone and all together
	all := Choices{arith.ANERules{Eps: arith.EpsExact, VNorm: arith.VNormFiveSteps, SoftCap: arith.SoftCapMultiplies, Softmax: arith.SoftmaxFused,
		PLEScale: arith.PLEScaleFolded}, ProjectionScaled}
	require.Len(t, all.words(), len(choices))
	tests := []Choices{{}, all}
	for _, k := range choices {
		for v := range k.values {
			var c Choices
			*k.of(&c) = uint8(v)
			tests = append(tests, c)
		}
	}
	for _, want := range tests {
		f, err := Parse("m", chosen(t, want.words()))
		require.NoError(t, err)
		require.Equal(t, want, f.Choices())
	}
}

func TestUnknownChoicesAreRefused(t *testing.T) { // hand
	for want, words := range map[string]map[string]string{
		`m: choices: an unknown choice "rope"`:                         {"rope": "halves"},
		`m: choices: soft_cap is "shifts", want divides or multiplies`: {"soft_cap": "shifts"},
		`m: choices: ple_projection is "folded", want plain or scaled`: {"eps": "exact", "ple_projection": "folded"},
	} {
		_, err := Parse("m", chosen(t, words))
		require.ErrorContains(t, err, want)
	}
}

func TestVersionSaysWhetherThereAreChoices(t *testing.T) { // hand: byte 20 of the trailer
	plain, with := chosen(t, nil), chosen(t, Choices{Projection: ProjectionScaled}.words())
	at := func(b []byte) int { return len(b) - trailerSize + 20 }
	require.Equal(t, byte(1), plain[at(plain)])
	require.Equal(t, byte(2), with[at(with)])
	with[at(with)] = 1 // what an older reader would run without its choices
	_, err := Parse("m", with)
	require.ErrorContains(t, err, "m: choices: 1 of them in a file of version 1")
	plain[at(plain)] = 2
	_, err = Parse("m", plain)
	require.ErrorContains(t, err, "m: choices: 0 of them in a file of version 2")
	plain[at(plain)] = 3
	_, err = Parse("m", plain)
	require.ErrorContains(t, err, "m: version: 3, want 1 or 2")
}
