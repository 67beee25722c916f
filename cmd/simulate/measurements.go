package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"anelab"
	"anelab/anesim"
	"anelab/anesim/devicelog"
	"anelab/anesim/devices"
	"anelab/cmd/simulate/internal/console"
	"anelab/internal/format"
	"anelab/quant"
)

// embeddedMeasurements is what the shipped devices were fitted on.
const embeddedMeasurements = "testdata/measured/experiments.csv"

// nameOfInput is what results call a measurements argument.
func nameOfInput(path string) string {
	switch path {
	case "":
		return "the embedded measurements"
	case "-":
		return "standard input"
	}
	return path
}

// logFlag is what pasted logs and tables leave out.
type logFlag struct{ settings []string }

// logKeys of --log, in the order of help.
var logKeys = []string{"device", "context", "model", "weights", "copyback", "date", "name"}

func (l *logFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&l.settings, "log", nil, "what a pasted log leaves out: `device=D,context=C` and model, weights, copyback, date, name")
}

// context reads the settings; those that are not given are the defaults of layouts.
func (l *logFlag) context() (devicelog.Context, error) {
	c := devicelog.Context{Experiment: "log", Model: embeddedModels[0].measuredAs, WeightBits: 4, GroupSize: 32}
	for _, s := range l.settings {
		key, value, _ := strings.Cut(s, "=")
		if err := setLog(&c, key, value); err != nil {
			return c, usagef("--log %s: %w", s, err)
		}
	}
	return c, nil
}

func setLog(c *devicelog.Context, key, value string) (err error) {
	switch key {
	case "device":
		c.Device, err = measuredAs(value)
	case "context":
		c.Context, err = parseSize(value)
	case "model":
		c.Model = modelMeasuredAs(value)
	case "weights":
		var e quant.Encoding
		e, err = quant.ParseEncoding(value)
		c.WeightBits, c.GroupSize = e.Bits, e.Group
	case "copyback":
		if !slices.Contains(copyBacks, value) {
			return errors.New(format.DidYouMean(value, copyBacks))
		}
		c.CopyBack = anesim.CopyBack(value)
	case "date":
		c.Date = value
	case "name":
		c.Experiment = value
	default:
		return fmt.Errorf("unknown setting; %s", format.DidYouMean(key, logKeys))
	}
	return err
}

// measuredAs is the name of a device in the device column; a device of a file has its own.
func measuredAs(name string) (string, error) {
	if !slices.Contains(deviceNames(), name) {
		return name, nil
	}
	d, err := devices.Load(name)
	if err != nil || len(d.MeasuredAs) == 0 {
		return name, err
	}
	return d.MeasuredAs[0], nil
}

func modelMeasuredAs(name string) string {
	for _, m := range embeddedModels {
		if m.name == name {
			return m.measuredAs
		}
	}
	return name
}

// readMeasurements reads a file of any kind that package devicelog knows, standard input, or what comes with the program. Rows
// that are good are returned even when others are not.
func readMeasurements(c *console.Console, path string, log *logFlag) ([]anesim.Measurement, error) {
	s, err := readSession(c, path, log)
	if err == nil && len(s.Measurements) == 0 && len(s.Calls) > 0 {
		err = &format.Error{Path: nameOfInput(path), Got: fmt.Sprintf("%d timed calls of whole models", len(s.Calls)), Want: "times of chunks of a layout",
			Fix: "simulate transfer takes them for the stream of weights"}
	}
	return s.Measurements, err
}

// readSession is all that a file of measurements holds.
func readSession(c *console.Console, path string, log *logFlag) (devicelog.Session, error) {
	context, err := log.context()
	if err != nil {
		return devicelog.Session{}, err
	}
	text, err := measurementsText(c, path)
	if err != nil {
		return devicelog.Session{}, err
	}
	if k := devicelog.Detect(text); (k == devicelog.FormatLog || k == devicelog.FormatInstruments) && (context.Device == "" || context.Context == 0) {
		return devicelog.Session{}, usagef("%s: a %s does not say what ran where: add --log device=%s,context=2048", nameOfInput(path), k, defaultDevice)
	}
	s, err := devicelog.Read(nameOfInput(path), text, context)
	for _, doubt := range s.Doubts {
		c.Warn(nameOfInput(path) + ": " + doubt)
	}
	if s.Skipped > 0 {
		c.Warn(fmt.Sprintf("%s: %d of %d lines say nothing of times", nameOfInput(path), s.Skipped, s.Lines))
	}
	return s, err
}

func measurementsText(c *console.Console, path string) ([]byte, error) {
	switch path {
	case "":
		return anelab.Files.ReadFile(embeddedMeasurements)
	case "-":
		text, err := c.ReadInput("measurements")
		if err != nil {
			return nil, usageError{err}
		}
		return text, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, &format.Error{Path: path, Got: reason(err).Error(), Want: "a measurements file"}
	}
	return text, nil
}

// embeddedRows are the measurements that come with the program.
func embeddedRows() ([]anesim.Measurement, error) {
	text, err := anelab.Files.ReadFile(embeddedMeasurements)
	if err != nil {
		return nil, err
	}
	return anesim.ReadMeasurements(embeddedMeasurements, bytes.NewReader(text))
}
