package parity

import (
	"regexp"

	"anelab/coreml/mil"
)

// layerLabel is what the name of a constant tells of its layer: "2", or "c3_2" where a chunk was made of two.
var layerLabel = regexp.MustCompile(`layers_((?:[a-z][a-z0-9]*_)?[0-9]+)_`)

// layersOf says of every op which layer it belongs to, counted within the program: that of the last constant with a layer in its name
// that was used, −1 before the first. Converters keep the names of gains, and every part of a layer has one.
func layersOf(f *mil.Function) map[*mil.Op]int {
	layers, current := map[*mil.Op]int{}, -1
	labels, numbers := map[string]string{}, map[string]int{} // of constants; of labels, in order of use
	for _, op := range f.Body.Ops {
		if op.Type == "const" || op.IsConstexpr() {
			if m := layerLabel.FindStringSubmatch(op.Name()); m != nil {
				labels[op.Name()] = m[1]
			}
			continue
		}
		for name := range mil.Uses(op) {
			label, ok := labels[name]
			if !ok {
				continue
			}
			if _, seen := numbers[label]; !seen {
				numbers[label] = len(numbers)
			}
			current = numbers[label]
		}
		layers[op] = current
	}
	return layers
}
