package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"anelab/coreml/device"
	"anelab/coreml/interp"
	"anelab/parity"
	"anelab/parity/recorded"
)

// recordedCases are the calls that lie beside a package; none if there is no such file.
func recordedCases(path string) ([]device.Case, error) {
	beside := strings.TrimSuffix(path, filepath.Ext(path)) + ".safetensors"
	if _, err := os.Stat(beside); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	f, err := recorded.Open(beside)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []device.Case
	for _, c := range f.Cases {
		x, err := deviceCase(f, c)
		if err != nil {
			return nil, err
		}
		list = append(list, x)
	}
	return list, nil
}

var starts = map[recorded.StateFrom]device.Start{recorded.CarryState: device.Carried, recorded.GivenState: device.Given}

func deviceCase(f *recorded.File, c recorded.Case) (device.Case, error) {
	x := device.Case{Name: c.Name, Function: c.Function, Start: starts[c.State], Want: map[string]device.Expected{}}
	call, err := f.Call(c)
	if err != nil {
		return x, err
	}
	x.Inputs, x.State = tensors(call.Inputs), tensors(call.State)
	want, err := f.Expected(c, parity.Tolerance{})
	if err != nil {
		return x, err
	}
	for name, t := range want.Tensors {
		if !want.Free[name] {
			limit := want.Tolerances[name]
			x.Want[name] = device.Expected{Tensor: (*device.Tensor)(t), Atol: limit.Abs, Rtol: limit.Rel, RelRMS: limit.MaxRelRMS}
		}
	}
	return x, nil
}

// tensors are the same tensors under the type that the device takes.
func tensors(list map[string]*interp.Tensor) map[string]*device.Tensor {
	same := map[string]*device.Tensor{}
	for name, t := range list {
		same[name] = (*device.Tensor)(t)
	}
	return same
}
