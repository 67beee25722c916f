package main

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"anelab/anesim"
	"anelab/coreml"
	"anelab/coreml/mil"
	"anelab/coreml/place"
	"anelab/internal/format"
)

// programs are the functions of Core ML models that are called one after the other.
type programs struct {
	models    []*coreml.Model
	functions []*mil.Function
}

// openPrograms opens models and chooses one function of each: the one that is asked for, else the default one. Close them.
func openPrograms(paths []string, function string) (*programs, error) {
	p := &programs{}
	for _, path := range paths {
		m, err := coreml.Open(path)
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		p.models = append(p.models, m)
		f := functionOf(m, function)
		if f == nil {
			return nil, errors.Join(&format.Error{Path: path, Got: "no function " + function, Want: strings.Join(m.FunctionNames(), ", ")}, p.close())
		}
		p.functions = append(p.functions, f)
	}
	return p, nil
}

func (p *programs) close() (err error) {
	for _, m := range p.models {
		err = errors.Join(err, m.Close())
	}
	return err
}

// functionOf finds a function by name; without one the default function, or the one that decodes.
func functionOf(m *coreml.Model, name string) *mil.Function {
	if name == "" && m.Description != nil {
		name = m.Description.DefaultFunction
	}
	if name == "" {
		return m.Decode()
	}
	return m.Program.Function(name)
}

// areCoreModels reports whether all arguments name Core ML models; some but not all is wrong usage.
func areCoreModels(args []string) (bool, error) {
	models := 0
	for _, arg := range args {
		if coreml.IsModel(arg) {
			models++
		}
	}
	if models > 0 && models < len(args) {
		i := slices.IndexFunc(args, func(arg string) bool { return !coreml.IsModel(arg) })
		return false, usagef("%q is no .mlpackage or .mlmodelc, and the other arguments are", args[i])
	}
	return models > 0, nil
}

// reading is a plan made from models, and the subject it is priced as.
func (p *programs) reading(s *subject) (*place.Reading, error) {
	r, err := place.ReadPlan(p.functions)
	if err != nil {
		var fault *format.Error
		if errors.As(err, &fault) && fault.Path == "" {
			fault.Path = p.models[0].Path
		}
		return nil, err
	}
	s.model = r.Plan.Model
	s.modelName = filepath.Base(filepath.Dir(filepath.Clean(p.models[0].Path)))
	if s.modelName == "." || s.modelName == string(filepath.Separator) {
		s.modelName = filepath.Base(p.models[0].Path)
	}
	for _, known := range embeddedModels {
		_, m, err := loadModel(known.name)
		if err == nil && len(m.Layers) == len(s.model.Layers) && m.Config.HiddenSize == s.model.Config.HiddenSize {
			s.modelName = known.measuredAs
		}
	}
	return r, nil
}

// kvForm says where the functions keep what they remember.
func (p *programs) kvForm() anesim.KVForm {
	for _, f := range p.functions {
		if len(f.States()) > 0 {
			return anesim.KVState
		}
	}
	return anesim.KVExplicit
}

// unpriced hands what has no term to the cost model.
func unpriced(r *place.Reading) []anesim.Unpriced {
	var all []anesim.Unpriced
	for _, u := range r.Unknown {
		all = append(all, anesim.Unpriced{Chunk: u.Chunk, Class: u.Class, Ops: u.Ops, ExpectedSeconds: u.Seconds})
	}
	return all
}

// subjectOf is what limits ask of chunk i.
func (p *programs) subjectOf(r *place.Reading, i int, class anesim.Class) anesim.Subject {
	s := anesim.SubjectOf(r.Plan, i, class)
	s.StateTypes, s.Functions = len(p.functions[i].States()), len(p.models[i].Functions)
	traits := map[anesim.OpTrait]bool{}
	for op := range p.functions[i].Body.All() {
		switch {
		case op.Type == "cumsum":
			traits[anesim.OpCumsum] = true
		case op.Type == "reduce_argmax":
			traits[anesim.OpArgmax] = true
		case op.Type == "quantize":
			s.ActivationBits = 8
		}
		for _, out := range op.Outputs {
			t, ok := out.Type.AsTensor()
			if !ok || op.Type == "const" {
				continue
			}
			if op.Type == "cast" && t.DType == mil.Float32 {
				traits[anesim.OpFloat32Cast] = true
			}
			if t.DType == mil.Int32 {
				traits[anesim.OpInt32] = true
			}
			if op.Type == "matmul" && len(t.Shape) > 4 {
				traits[anesim.OpMatmul5D] = true
			}
		}
	}
	for _, in := range p.functions[i].Inputs {
		s.FlexibleShapes = s.FlexibleShapes || in.Flexible != nil && len(in.Flexible.Ranges) > 0
	}
	for t := range traits {
		s.Ops = append(s.Ops, t)
	}
	slices.Sort(s.Ops)
	return s
}
