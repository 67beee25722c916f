package metrics

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/anesim"
	"anelab/internal/shareddata"
)

var update = flag.Bool("update", false, "write docs/metrics.md")

// invariant: the page in docs is what the command prints.
func TestDocsAreGenerated(t *testing.T) {
	path := filepath.Join(shareddata.ModuleRoot(t), "docs", "metrics.md")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(Markdown()), 0o644))
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, Markdown(), string(text), "run this test with -update")
}

// invariant: a name leads to one entry.
func TestNamesAreUnique(t *testing.T) {
	seen := map[string]string{}
	for _, e := range All() {
		require.NotEmpty(t, e.Short, e.Name)
		require.NotEmpty(t, e.Text, e.Name)
		require.NotEmpty(t, e.Seen, e.Name)
		require.False(t, strings.HasSuffix(e.Short, "."), "%s: one line without a stop", e.Name)
		for _, name := range append([]string{e.Name}, e.Aliases...) {
			require.Empty(t, seen[fold(name)], "%s is of %s too", name, e.Name)
			seen[fold(name)] = e.Name
		}
	}
}

func TestEveryTermAndResourceIsDefined(t *testing.T) { // invariant
	for term := range anesim.NumTerms {
		e, err := Find(term.String())
		require.NoError(t, err)
		require.Equal(t, term.Unit(), e.Unit)
		require.NotEmpty(t, termTexts[term], "%s: say what it stands for", term)
		_, err = Find(term.Resource())
		require.NoError(t, err, "a resource that tables print")
	}
}

func TestFind(t *testing.T) { // hand
	for name, want := range map[string]string{"tok_s": "tok_s", "tok/s": "tok_s", "TOK_PER_S": "tok_s", "hand-off": "handoff", "bound_by": "bound", "dispatch": "dispatch"} {
		e, err := Find(name)
		require.NoError(t, err)
		require.Equal(t, want, e.Name, name)
	}
	_, err := Find("bond")
	require.ErrorContains(t, err, `did you mean "bound"?`)
}
