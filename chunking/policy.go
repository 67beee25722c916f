package chunking

import (
	"fmt"
	"strconv"
	"strings"

	"anelab/gemma4"
	"anelab/internal/format"
)

// policyNames are what error messages suggest.
var policyNames = []string{"full", "sliding"}

// checkPolicy reports what is wrong with the text of an attention policy.
func checkPolicy(text string) error {
	name, arg, hasArg := strings.Cut(text, ":")
	switch {
	case name == "full" && !hasArg:
		return nil
	case name == "sliding" && hasArg:
		if n, err := strconv.Atoi(arg); err == nil && n >= 1 && n <= maxContext {
			return nil
		}
		return &format.Error{Field: "attn", Got: strconv.Quote(text), Want: fmt.Sprintf("sliding:<positions>, 1 to %d", maxContext)}
	case name == "full" || name == "sliding":
		return &format.Error{Field: "attn", Got: strconv.Quote(text), Want: `"full" or "sliding:<positions>"`}
	}
	return &format.Error{Field: "attn", Got: strconv.Quote(text), Want: "an attention policy", Fix: format.DidYouMean(name, policyNames)}
}

// policyRows is the number of cache rows that a layer's queries look at. It asks nobody but the policy text, or the model
// when there is none: full layers see the context, sliding layers their window.
func policyRows(l gemma4.Layer, policy string, context int) int {
	if arg, ok := strings.CutPrefix(policy, "sliding:"); ok {
		n, _ := strconv.Atoi(arg) // checked by checkPolicy
		return n
	}
	if policy == "full" || l.Kind == gemma4.Full {
		return context
	}
	return l.Window
}
