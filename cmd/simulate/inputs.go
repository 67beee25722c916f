package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"anelab"
	"anelab/anesim"
	"anelab/anesim/devices"
	"anelab/chunking"
	"anelab/chunking/layoutfile"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/view"
	"anelab/gemma4"
	"anelab/internal/format"
)

// embeddedModels are the published configurations by their names on the command line.
var embeddedModels = []struct{ name, measuredAs, path string }{
	{"e2b", "gemma-4-e2b", "testdata/configs/e2b.json"},
	{"e4b", "gemma-4-e4b", "testdata/configs/e4b.json"},
	{"31b", "gemma-4-31b", "testdata/configs/31b.json"},
}

func modelNames() []string {
	var names []string
	for _, m := range embeddedModels {
		names = append(names, m.name)
	}
	return names
}

// Defaults where the command line says nothing.
const (
	defaultModel  = "e2b"
	defaultDevice = "iphone17pro"
	deviceEnv     = "SIMULATE_DEVICE"
)

// subjectFlags say which model runs on which device.
type subjectFlags struct {
	model, device string
}

func (s *subjectFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.model, "model", defaultModel, "`MODEL`: "+strings.Join(modelNames(), ", ")+", or the path of a config.json")
	cmd.Flags().StringVar(&s.device, "device", "", "`DEVICE`: "+strings.Join(devices.Names(), ", ")+", another of simulate devices, or a file (default $"+deviceEnv+", else "+defaultDevice+")")
	complete(cmd, "model", modelNames())
	complete(cmd, "device", deviceNames())
}

// subject is a resolved model and device.
type subject struct {
	modelName  string
	model      *chunking.Model
	device     anesim.Device
	deviceName string // as it was asked for: a name or a file
	deviceFrom string // why this device, when neither flag nor default chose it
}

func (s *subjectFlags) resolve(c *console.Console) (subject, error) {
	var sub subject
	var err error
	if sub.modelName, sub.model, err = loadModel(s.model); err != nil {
		return subject{}, err
	}
	name := s.device
	if name == "" {
		name = defaultDevice
		if env := c.Getenv(deviceEnv); env != "" {
			name, sub.deviceFrom = env, "from "+deviceEnv
		}
	}
	sub.deviceName = name
	if sub.device, err = loadDevice(name); err != nil && sub.deviceFrom != "" {
		err = fmt.Errorf("%s: %w", deviceEnv, err)
	}
	return sub, err
}

// source describes the subject in headers and documents.
func (s *subject) source() view.Source {
	sum := sha256.Sum256(devices.Write(s.device))
	return view.Source{Model: s.modelName, Layers: len(s.model.Layers), Device: s.device.Name, DeviceFrom: s.deviceFrom,
		DeviceHash: hex.EncodeToString(sum[:8])}
}

// loadModel resolves --model: an embedded configuration or a file.
func loadModel(name string) (string, *chunking.Model, error) {
	for _, m := range embeddedModels {
		if m.name == name || m.measuredAs == name {
			text, err := anelab.Files.ReadFile(m.path)
			if err != nil {
				return "", nil, err
			}
			model, err := parseModel(m.path, text)
			return m.measuredAs, model, err
		}
	}
	text, err := os.ReadFile(name)
	if err != nil {
		if !strings.ContainsAny(name, `./\`) {
			return "", nil, usagef("unknown model %q; %s; the path of a config.json will do, too", name, format.DidYouMean(strings.ToLower(name), modelNames()))
		}
		return "", nil, &format.Error{Path: name, Got: reason(err).Error(), Want: "a config.json"}
	}
	model, err := parseModel(name, text)
	return filepath.Base(name), model, err
}

func parseModel(path string, text []byte) (*chunking.Model, error) {
	cfg, err := gemma4.ParseConfig(path, text)
	if err != nil {
		return nil, err
	}
	return chunking.NewModel(cfg)
}

// deviceNames are the devices that come with the program, the measured ones first.
func deviceNames() []string { return append(devices.Names(), devices.PriorNames()...) }

// loadDevice resolves --device: a shipped device or a file.
func loadDevice(name string) (anesim.Device, error) {
	if slices.Contains(deviceNames(), name) {
		return devices.Load(name)
	}
	if !strings.ContainsAny(name, `./\`) {
		return anesim.Device{}, usagef("unknown device %q; %s", name, format.DidYouMean(strings.ToLower(name), deviceNames()))
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return anesim.Device{}, &format.Error{Path: name, Got: reason(err).Error(), Want: "a device file"}
	}
	return devices.Read(name, text)
}

// loadLayout resolves a layout argument: text, a preset, a YAML or JSON file, or "-" for standard input.
func loadLayout(c *console.Console, arg string, m *chunking.Model) (chunking.Layout, error) {
	switch strings.ToLower(filepath.Ext(arg)) {
	case ".yaml", ".yml", ".json":
		text, err := os.ReadFile(arg)
		if err != nil {
			return chunking.Layout{}, &format.Error{Path: arg, Got: reason(err).Error(), Want: "a layout file"}
		}
		return readLayout(arg, text, m)
	}
	if _, isPreset := m.Preset("@" + arg); isPreset {
		return chunking.Layout{}, usagef("layout %q; did you mean %q?", arg, "@"+arg)
	}
	if arg != "-" {
		return chunking.Parse(arg, m)
	}
	text, err := c.ReadInput("a layout")
	if err != nil {
		return chunking.Layout{}, usageError{err}
	}
	if body := strings.TrimSpace(string(text)); !strings.ContainsAny(body, ":\n") {
		return chunking.Parse(body, m)
	}
	return readLayout("standard input", text, m)
}

// readLayout reads a layout file; a file that is no layout is wrong usage, as text that is none.
func readLayout(path string, text []byte, m *chunking.Model) (chunking.Layout, error) {
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return chunking.Layout{}, usageError{&format.Error{Path: path, Got: "bytes that are no text", Want: "a layout as YAML or JSON"}}
	}
	l, err := layoutfile.Read(path, text, m)
	if err != nil {
		return l, usageError{err}
	}
	return l, nil
}
