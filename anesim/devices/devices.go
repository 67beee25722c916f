package devices

import (
	"embed"
	"slices"
	"strconv"
	"strings"

	"anelab/anesim"
	"anelab/internal/format"
)

//go:embed *.yaml prior/*.yaml
var shipped embed.FS

// priorFolder holds the profiles of devices that nobody measured.
const priorFolder = "prior"

// Names lists the calibrated devices that come with the program, sorted.
func Names() []string { return namesIn(".") }

// PriorNames lists the devices that come with the program and were never measured: their values are priors from published
// figures, and predictions say so.
func PriorNames() []string { return namesIn(priorFolder) }

// Sorted, as embedded folders are.
func namesIn(folder string) []string {
	entries, err := shipped.ReadDir(folder)
	if err != nil {
		panic("devices: embedded files are missing")
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".yaml"); ok {
			names = append(names, name)
		}
	}
	return names
}

// Load reads a device that comes with the program, measured or not.
func Load(name string) (anesim.Device, error) {
	for _, path := range []string{name + ".yaml", priorFolder + "/" + name + ".yaml"} {
		if data, err := shipped.ReadFile(path); err == nil {
			return Read(name+".yaml", data)
		}
	}
	return anesim.Device{}, &format.Error{Path: "device", Got: strconv.Quote(name), Want: "the name of a device or a file",
		Fix: format.DidYouMean(name, slices.Concat(Names(), PriorNames()))}
}

// All loads every calibrated device that comes with the program.
func All() ([]anesim.Device, error) {
	var all []anesim.Device
	for _, name := range Names() {
		d, err := Load(name)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// Priors loads every device that comes with the program and was never measured.
func Priors() ([]anesim.Device, error) {
	var all []anesim.Device
	for _, name := range PriorNames() {
		d, err := Load(name)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}
