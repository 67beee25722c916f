package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/proof"
	"anelab/cmd/simulate/internal/view"
	"anelab/coreml"
	"anelab/coreml/device"
	"anelab/coreml/interp"
	"anelab/internal/format"
	"anelab/parity"
	recordedcalls "anelab/parity/recorded"
)

// callFlags say which calls of a package are made.
type callFlags struct {
	inputs, expect, device string
	function               string
	cases                  []string
	precision              choice
	all                    bool
}

func (f *callFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.inputs, "inputs", "", "of a package: calls in `FILE`, CASE/in/NAME or NAME")
	flags.StringVar(&f.expect, "expect", "", "of a package: results in `FILE`, CASE/out/NAME or NAME")
	flags.StringVar(&f.device, "device", "", "of a package: results that the report `FILE` of a device holds")
	flags.StringVar(&f.function, "function", "", "`NAME` of the function, if calls do not say it")
	flags.StringSliceVar(&f.cases, "case", nil, "only the calls `NAME`,…")
	f.precision = choice{"fp16", []string{"exact", "fp16", "ane", "fast"}, "PRECISION"}
	addChoice(cmd, "precision", "rounding of a package's ops", &f.precision)
	flags.BoolVar(&f.all, "all", false, "go on behind the first tensor that parts")
}

func (f *callFlags) given() bool { return f.inputs != "" || f.expect != "" || f.device != "" }

// limitFlags replace the tolerances of an index.
type limitFlags struct {
	cmd                    *cobra.Command
	abs, rel, peak, relRMS float64
	ulp                    int64
}

// limitNames are the flags of a tolerance.
var limitNames = []string{"abs", "rel", "of-peak", "rel-rms", "ulp"}

func (f *limitFlags) add(cmd *cobra.Command) {
	f.cmd = cmd
	flags := cmd.Flags()
	flags.Float64Var(&f.abs, "abs", 0, "allow `X` between two elements")
	flags.Float64Var(&f.rel, "rel", 0, "and `X` times the expected one")
	flags.Float64Var(&f.peak, "of-peak", 0, "and `X` times the greatest of its tensor")
	flags.Float64Var(&f.relRMS, "rel-rms", 0, "allow `X` for the rms of a tensor's differences")
	flags.Int64Var(&f.ulp, "ulp", 0, "or `N` steps of the storage type")
}

// tolerance is what the flags ask for, nil if none was given.
func (f *limitFlags) tolerance() *parity.Tolerance {
	for _, name := range limitNames {
		if f.cmd.Flags().Changed(name) {
			t := &parity.Tolerance{Abs: f.abs, Rel: f.rel, PeakRel: f.peak, MaxRelRMS: f.relRMS, MaxULP: f.ulp}
			if t.Exact() && f.relRMS > 0 {
				t.PeakRel = 1 // judged as a whole
			}
			return t
		}
	}
	return nil
}

// openFiles are closed together.
type openFiles []io.Closer

func (f *openFiles) close() {
	for _, x := range *f {
		x.Close()
	}
}

// runProgram runs a package on recorded calls.
func (o *verifyOptions) runProgram(ctx context.Context, c *console.Console, args []string) error {
	if err := o.checkProgramArgs(args); err != nil {
		return err
	}
	var files openFiles
	defer files.close()
	s, err := o.programSubject(args, &files)
	if err != nil {
		return err
	}
	progress := c.Progress()
	defer progress.Done()
	result, err := proof.RunProgram(ctx, s, func(step string) { progress.Say("%s", step) })
	if err != nil {
		return err
	}
	progress.Done()
	return o.show(c, &view.VerifyProgram{Made: made(c), Precision: o.calls.precision.value, Inputs: s.Inputs.Path(), Expect: o.calls.expect, Result: result})
}

func (o *verifyOptions) checkProgramArgs(args []string) error {
	f := &o.calls
	if f.inputs == "" {
		f.inputs = f.expect // a recording has both
	}
	switch {
	case len(args) > 2:
		return usagef("%d packages: want one, two to compare, or a checkpoint in front of the chunks of a model", len(args))
	case len(args) == 2 && !coreml.IsModel(args[1]):
		return usagef("%q is no package: compare a package with another one", args[1])
	case f.inputs == "":
		return usagef("a package is run on calls: name a file with --inputs")
	case len(args) == 2 && (f.expect != "" || f.device != ""):
		return usagef("two packages are compared with each other: leave out --expect and --device")
	case len(args) == 1 && f.expect == "" && f.device == "":
		return usagef("what should %s compute? Name results with --expect, or a second package", args[0])
	case len(o.modes) > 0 || len(o.goldens) > 0:
		return usagef("--mode and --golden are for a checkpoint; a package has --precision and --expect")
	}
	return nil
}

// programSubject opens everything that the arguments and flags name.
func (o *verifyOptions) programSubject(args []string, files *openFiles) (*proof.ProgramSubject, error) {
	s := &proof.ProgramSubject{Cases: o.calls.cases, Tolerance: o.limits.tolerance(), KeepGoing: o.calls.all}
	var err error
	if s.Got, err = o.openPackage(args[0], files); err != nil {
		return nil, err
	}
	s.Function = s.Got.Function
	if len(args) == 2 {
		want, err := o.openPackage(args[1], files)
		if err != nil {
			return nil, err
		}
		if s.Want = &want; want.Label == s.Got.Label {
			s.Got.Label, want.Label = args[0], args[1]
		}
	}
	if s.Inputs, err = openCalls(o.calls.inputs, files); err != nil {
		return nil, err
	}
	switch o.calls.expect {
	case "":
	case o.calls.inputs:
		s.Expect = s.Inputs
	default:
		if s.Expect, err = openCalls(o.calls.expect, files); err != nil {
			return nil, err
		}
	}
	if o.calls.device != "" {
		s.Device, err = reportedModel(o.calls.device, args[0])
	}
	return s, err
}

func openCalls(path string, files *openFiles) (*recordedcalls.File, error) {
	f, err := recordedcalls.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	*files = append(*files, f)
	return f, nil
}

// openPackage makes a package ready for the interpreter.
func (o *verifyOptions) openPackage(path string, files *openFiles) (parity.MIL, error) {
	precision, err := interp.ParsePrecision(o.calls.precision.value)
	if err != nil {
		return parity.MIL{}, err
	}
	program, err := coreml.Open(path)
	if err != nil {
		return parity.MIL{}, err
	}
	*files = append(*files, program)
	m, err := interp.New(program.Program, interp.Options{Precision: precision, Path: path})
	if err != nil {
		return parity.MIL{}, err
	}
	function := o.calls.function
	if f := program.Decode(); function == "" && f != nil {
		function = f.Name
	}
	return parity.MIL{Label: filepath.Base(path), Model: m, Function: function}, nil
}

// reportedModel finds what a device has reported of a package.
func reportedModel(path, pkg string) (*device.ReportModel, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	r, err := device.ReadReport(path, data)
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range r.Models {
		name := filepath.Base(r.Models[i].Path)
		if names = append(names, name); name == filepath.Base(pkg) {
			return &r.Models[i], nil
		}
	}
	return nil, &format.Error{Path: path, Field: "models", Got: "no " + filepath.Base(pkg), Want: strings.Join(names, ", ")}
}
