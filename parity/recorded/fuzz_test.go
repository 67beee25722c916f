package recorded

import (
	"strings"
	"testing"
)

// FuzzParseIndex: whatever the text is, an entry is sound or refused.
func FuzzParseIndex(f *testing.F) {
	for _, seed := range []string{
		`{"x":{"cases":[{"name":"a","function":"main","state":"zero"}],"exact":false,"tolerance":{"y":{"atol":0.1,"rtol":1e-3,"rel_rms":0.004}}}}`,
		`{"x":{"exact":"fp32","free_tokens":["a"]}}`, `{"_x":1,"x":null}`, `{"x":{"tolerance":{"y":{"atol":1e999}}}}`, `[]`, ``,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := parseIndex("index.json", "x", []byte(text))
		if err != nil || e == nil {
			return
		}
		for _, c := range e.Cases {
			if c.Name == "" {
				t.Fatal("a case without a name")
			}
		}
		for name := range e.Tolerance {
			if tolerance, _ := e.tolerance(name); !(tolerance.Abs >= 0 && tolerance.Rel >= 0 && tolerance.MaxRelRMS >= 0) {
				t.Fatalf("tolerance of %s: %+v", name, tolerance)
			}
		}
	})
}

// FuzzCaseOf: a name that is taken apart is put together from its parts again.
func FuzzCaseOf(f *testing.F) {
	for _, seed := range []string{"s0/in/x", "a/b/out/y", "in/x", "x", "s0/state_in/kv", "//", "s0/in/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		c, kind, ok := caseOf(name)
		if ok && !strings.HasPrefix(name, c+"/"+kind+"/") {
			t.Fatalf("%q is no part of %q", c+"/"+kind+"/", name)
		}
	})
}
