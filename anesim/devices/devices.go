package devices

import (
	"embed"
	"strconv"
	"strings"

	"anelab/anesim"
	"anelab/internal/format"
)

//go:embed *.yaml
var shipped embed.FS

// Names lists the devices that come with the program, sorted.
func Names() []string {
	entries, err := shipped.ReadDir(".")
	if err != nil {
		panic("devices: embedded files are missing")
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// Load reads a device that comes with the program.
func Load(name string) (anesim.Device, error) {
	data, err := shipped.ReadFile(name + ".yaml")
	if err != nil {
		return anesim.Device{}, &format.Error{Path: "device", Got: strconv.Quote(name), Want: "the name of a device or a file", Fix: format.DidYouMean(name, Names())}
	}
	return Read(name+".yaml", data)
}

// All loads every device that comes with the program.
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
