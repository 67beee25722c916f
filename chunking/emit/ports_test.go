package emit_test

import (
	"anelab/coreml/mil"
)

func featureNames(list []mil.Feature) []string {
	var names []string
	for _, f := range list {
		names = append(names, f.Name)
	}
	return names
}
