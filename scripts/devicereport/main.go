package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"anelab/coreml/device"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Exit codes.
const (
	fine, failed, misused, interrupted = 0, 1, 2, 130
)

func run(ctx context.Context, args []string, out, log io.Writer) int {
	s, paths, err := session(args, log)
	if err != nil {
		return misused
	}
	fail := func(err error) int {
		fmt.Fprintln(log, "devicereport:", err)
		if ctx.Err() != nil {
			return interrupted
		}
		return failed
	}
	if err := device.Available(); err != nil {
		return fail(err)
	}
	for _, path := range paths {
		cases, err := recordedCases(path)
		if err != nil {
			return fail(err)
		}
		s.Subjects = append(s.Subjects, device.Subject{Path: path, Cases: cases})
	}
	r, err := device.Measure(ctx, s)
	if err != nil {
		return fail(err)
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fail(err)
	}
	if _, err := fmt.Fprintf(out, "%s\n", text); err != nil {
		return fail(err)
	}
	return verdict(r, log)
}

// session reads the command line.
func session(args []string, log io.Writer) (s device.Session, paths []string, err error) {
	s = device.Session{Units: device.CPUAndANE, Progress: func(what string) { fmt.Fprintln(log, what) }}
	f := flag.NewFlagSet("devicereport", flag.ContinueOnError)
	f.SetOutput(log)
	f.StringVar(&s.Experiment, "experiment", "device_validate", "`name` of the session")
	f.StringVar(&s.Layout, "layout", "", "one `part` for each package, such as 0-7|8-24|25-34+head")
	f.StringVar(&s.Model, "model", "gemma-4-e2b", "`name` of the model that the packages are chunks of")
	f.StringVar(&s.Device, "device", "", "`name` of this device in device files; the chip if not given")
	f.StringVar(&s.Function, "function", "", "`name` of the function to time where a package has it")
	f.IntVar(&s.Calls, "calls", 24, "timed predictions of each package")
	f.Func("units", "`processors` to choose from: cpu, cpu+gpu, all or cpu+ane (default cpu+ane)", func(name string) (err error) {
		s.Units, err = device.ParseUnits(name)
		return err
	})
	f.BoolFunc("surface", "put fp16 inputs and outputs on IOSurfaces", func(string) error {
		s.Backing = device.Surface
		return nil
	})
	if err := f.Parse(args); err != nil {
		return s, nil, err
	}
	if f.NArg() == 0 || s.Calls < 0 {
		f.Usage()
		return s, nil, flag.ErrHelp
	}
	if s.Layout == "" {
		s.Model = ""
	}
	return s, f.Args(), nil
}

// verdict says on the log what went wrong.
func verdict(r *device.Report, log io.Writer) int {
	code := fine
	note := func(path, what string) {
		fmt.Fprintf(log, "%s: %s\n", path, what)
		code = failed
	}
	for _, m := range r.Models {
		if m.Error != "" {
			note(m.Path, m.Error)
		}
		for _, c := range m.Cases {
			switch {
			case c.Error != "":
				note(m.Path, "case "+c.Name+": "+c.Error)
			case c.Within != nil && !*c.Within:
				note(m.Path, "case "+c.Name+": further from the recorded outputs than allowed")
			}
		}
	}
	return code
}
