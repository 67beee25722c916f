package place

import (
	"regexp"
	"strings"

	"anelab/chunking"
	"anelab/coreml/mil"
)

// portRoles tell ports by what decoders call them; the first that matches counts.
var portRoles = []struct {
	name *regexp.Regexp
	role chunking.Role
}{
	{regexp.MustCompile(`(?i)update_(mask|indicator)|ring_pos|current_pos|position`), chunking.RoleUpdate},
	{regexp.MustCompile(`(?i)mask`), chunking.RoleMask},
	{regexp.MustCompile(`(?i)per_layer|^ple`), chunking.RolePLE},
	{regexp.MustCompile(`(?i)^(cos|sin)|rope`), chunking.RoleRope},
	{regexp.MustCompile(`(?i)^kv\d+_[kv]$`), chunking.RoleHandoff},
	{regexp.MustCompile(`^(new_)?[KV]_|(?i)cache|past_key|past_value|present`), chunking.RoleCache},
	{regexp.MustCompile(`(?i)token|logit|argmax`), chunking.RoleToken},
}

// readPorts reads the inputs or outputs of a function. States are none: nothing of them crosses a call.
func readPorts(variables []mil.Variable, earlier map[string]bool) []chunking.Port {
	var ports []chunking.Port
	for _, v := range variables {
		t, ok := v.Type.AsTensor()
		if !ok || v.Type.Kind == mil.State {
			continue
		}
		p := chunking.Port{Name: v.Name, Role: roleOf(v.Name, earlier), Type: chunking.Float16}
		if t.DType.Bits() == 32 {
			p.Type = chunking.Int32 // fp32 takes as many bytes
		}
		for _, n := range t.Shape {
			p.Shape = append(p.Shape, max(1, int(n)))
		}
		ports = append(ports, p)
	}
	return ports
}

// roleOf tells a port by its name. What an earlier chunk puts out under the same name, and is not the stream, is handed on.
func roleOf(name string, earlier map[string]bool) chunking.Role {
	for _, r := range portRoles {
		if r.name.MatchString(name) {
			return r.role
		}
	}
	if earlier[name] && !strings.Contains(name, "hidden") {
		return chunking.RoleHandoff
	}
	return chunking.RoleHidden
}

// stream is the hidden state among the inputs: its tokens and width; zeros if there is none that looks like it.
func stream(ports []chunking.Port) (tokens, width int) {
	for _, p := range ports {
		if p.Role != chunking.RoleHidden || p.Type != chunking.Float16 {
			continue
		}
		switch len(p.Shape) {
		case 3:
			return p.Shape[1], p.Shape[2] // [1, T, D]
		case 4:
			return p.Shape[3], p.Shape[1] // [1, D, 1, T]
		}
	}
	return 0, 0
}

// maskedRows is the longest row of keys that a mask speaks of.
func maskedRows(ports []chunking.Port) int {
	rows := 0
	for _, p := range ports {
		if n := len(p.Shape); n > 0 && p.Role == chunking.RoleMask {
			rows = max(rows, p.Shape[n-1])
		}
	}
	return rows
}
