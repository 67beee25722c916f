package view

import (
	"fmt"
	"slices"
)

// FormatVersion of every JSON document: major.minor.
const FormatVersion = "1.0"

// Made says what made a document.
type Made struct {
	FormatVersion string   `json:"format_version"`
	Tool          string   `json:"tool"` // "simulate 0.1.0"
	Command       []string `json:"command"`
}

// Source is the model and device that a result is about.
type Source struct {
	Model      string `json:"model"`
	Layers     int    `json:"layers"`
	Device     string `json:"device"`
	DeviceHash string `json:"device_sha256"` // first 16 hex digits, of the device file as the program would write it
	DeviceFrom string `json:"-"`
}

// head is the header line; parts are what the verb has to add in the middle.
func (s *Source) head(parts ...string) []string {
	device := "device " + s.Device
	if s.DeviceFrom != "" {
		device += " (" + s.DeviceFrom + ")"
	}
	return slices.Concat([]string{s.Model, fmt.Sprintf("%d layers", s.Layers)}, parts, []string{device})
}
