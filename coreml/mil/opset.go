package mil

import "strconv"

// Opset is the set of ops that a function may use. Its number is the specification version that introduced it.
type Opset uint8

// The opsets, each holding those before it.
const (
	NoOpset Opset = 0
	CoreML5 Opset = 6  // iOS 15, macOS 12
	CoreML6 Opset = 7  // iOS 16, macOS 13
	CoreML7 Opset = 8  // iOS 17, macOS 14
	CoreML8 Opset = 9  // iOS 18, macOS 15
	CoreML9 Opset = 10 // iOS 26, macOS 26
)

// Specification versions that hold programs.
const (
	OldestSpec = 6
	NewestSpec = 10
)

var opsets = []struct {
	opset      Opset
	name, text string
}{
	{CoreML5, "CoreML5", "ios15"}, {CoreML6, "CoreML6", "ios16"}, {CoreML7, "CoreML7", "ios17"}, {CoreML8, "CoreML8", "ios18"}, {CoreML9, "CoreML9", "ios26"},
}

// OpsetNames are the names that packages use.
func OpsetNames() []string {
	var names []string
	for _, o := range opsets {
		names = append(names, o.name)
	}
	return names
}

// ParseOpset finds an opset by the name that packages (CoreML8) or texts (ios18) use.
func ParseOpset(name string) (Opset, bool) {
	for _, o := range opsets {
		if o.name == name || o.text == name {
			return o.opset, true
		}
	}
	return NoOpset, false
}

// String is the name in packages: CoreML8.
func (o Opset) String() string {
	for _, x := range opsets {
		if x.opset == o {
			return x.name
		}
	}
	return "opset " + strconv.Itoa(int(o))
}

// Text is the name in texts: ios18.
func (o Opset) Text() string {
	for _, x := range opsets {
		if x.opset == o {
			return x.text
		}
	}
	return ""
}
