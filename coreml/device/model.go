package device

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"anelab/coreml/mil"
	"anelab/coreml/mlpackage"
	"anelab/internal/format"
)

// Model is a model that Core ML has compiled. Each of its functions is loaded when it is first used. It is safe for concurrent use;
// predictions of one function take turns.
type Model struct {
	Path           string
	Units          Units
	Package        *mlpackage.Package // nil if a compiled model was opened
	CompileSeconds float64

	machine  machine
	compiled string // .mlmodelc folder

	mu        sync.Mutex
	functions map[string]*function
	closed    bool
}

// function is a loaded function: Core ML ties every MLModel to one.
type function struct {
	faces
	machine     machine
	loadSeconds float64

	mu    sync.Mutex // one prediction at a time
	model id         // 0 after Close
}

// Open compiles an .mlpackage, or takes an .mlmodelc as it is. Close removes what was compiled.
func Open(path string, units Units) (*Model, error) {
	m, err := system()
	if err != nil {
		return nil, err
	}
	return open(machine{m}, path, units)
}

func open(rt machine, path string, units Units) (*Model, error) {
	m := &Model{Path: path, Units: units, machine: rt, functions: map[string]*function{}}
	if _, err := os.Stat(path); err != nil {
		return nil, &format.Error{Path: path, Err: err}
	}
	if filepath.Ext(path) == ".mlmodelc" {
		m.compiled = path
		return m, nil
	}
	pkg, err := mlpackage.Open(path)
	if err != nil {
		return nil, err
	}
	m.Package = pkg
	if err := m.compile(); err != nil {
		pkg.Close()
		return nil, err
	}
	return m, nil
}

// compile has Core ML write the .mlmodelc, into a temporary folder of its choice.
func (m *Model) compile() error {
	path, err := filepath.Abs(m.Path)
	if err != nil {
		return &format.Error{Path: m.Path, Err: err}
	}
	return m.machine.scope(func() error {
		start := time.Now()
		url, fault := m.machine.sendFault(m.machine.class("MLModel"), "compileModelAtURL:error:", m.machine.url(path))
		if url == 0 {
			return m.machine.refused(ErrCompile, m.Path, "", fault)
		}
		m.CompileSeconds = time.Since(start).Seconds()
		m.compiled = m.machine.goText(m.machine.send(url, "path"))
		return nil
	})
}

// Functions lists the functions of a package, the default one first. Those of a compiled model are not known: nil.
func (m *Model) Functions() []string {
	if m.Package == nil {
		return nil
	}
	var list []string
	for _, f := range m.Package.Program.Functions {
		list = append(list, f.Name)
	}
	if i := slices.Index(list, m.Package.Description.DefaultFunction); i > 0 {
		list[0], list[i] = list[i], list[0]
	}
	return list
}

// Ports describes a function; it is loaded if need be. LoadSeconds says how long that took, the first time.
func (m *Model) Ports(name string) (inputs, outputs, states []Port, err error) {
	f, err := m.function(name)
	if err != nil {
		return nil, nil, nil, err
	}
	return f.inputs, f.outputs, f.states, nil
}

// LoadSeconds is how long Core ML took to load a function that is loaded. The first load on a machine includes the compilers of the
// processors.
func (m *Model) LoadSeconds(name string) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.functions[name]; f != nil {
		return f.loadSeconds
	}
	return 0
}

// function loads a function that is not loaded yet.
func (m *Model) function(name string) (*function, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, &format.Error{Path: m.Path, Err: ErrClosed}
	}
	if f := m.functions[name]; f != nil {
		return f, nil
	}
	if known := m.Functions(); known != nil && !slices.Contains(known, name) {
		return nil, &format.Error{Path: m.Path, Field: "function", Got: strconv.Quote(name), Want: strings.Join(known, " or "), Err: ErrFunction, Fix: format.DidYouMean(name, known)}
	}
	f := &function{faces: faces{path: m.Path, function: name}, machine: m.machine}
	if err := m.machine.scope(func() error { return m.load(f) }); err != nil {
		return nil, err
	}
	m.functions[name] = f
	return f, nil
}

// load makes the MLModel of a function and reads its ports.
func (m *Model) load(f *function) error {
	rt := m.machine
	configuration, err := m.configuration(f.function)
	if err != nil {
		return err
	}
	defer rt.release(configuration)
	start := time.Now()
	model, fault := rt.sendFault(rt.class("MLModel"), "modelWithContentsOfURL:configuration:error:", rt.url(m.compiled), configuration)
	if model == 0 {
		return rt.refused(ErrLoad, m.Path, f.function, fault)
	}
	f.loadSeconds = time.Since(start).Seconds()
	description := rt.send(model, "modelDescription")
	f.inputs = rt.ports(rt.send(description, "inputDescriptionsByName"))
	f.outputs = rt.ports(rt.send(description, "outputDescriptionsByName"))
	if rt.responds(description, "stateDescriptionsByName") {
		f.states = rt.ports(rt.send(description, "stateDescriptionsByName"))
	}
	f.model = rt.retain(model)
	return nil
}

// configuration is an MLModelConfiguration; it is ours. A model with one function must not be given its name.
func (m *Model) configuration(name string) (id, error) {
	rt := m.machine
	c := rt.create("MLModelConfiguration")
	rt.send(c, "setComputeUnits:", id(m.Units))
	if m.Package != nil && len(m.Package.Description.Functions) == 0 || m.Package == nil && (name == "" || name == mil.MainFunction) {
		return c, nil
	}
	if !rt.responds(c, "setFunctionName:") {
		rt.release(c)
		return 0, &format.Error{Path: m.Path, Field: name, Want: "macOS 15 for models with several functions", Err: ErrSystem}
	}
	rt.send(c, "setFunctionName:", rt.text(name))
	return c, nil
}

// Close waits for predictions under way, unloads the functions and removes the compiled model. States and buffers are closed by
// themselves.
func (m *Model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	for _, name := range slices.Sorted(maps.Keys(m.functions)) {
		f := m.functions[name]
		f.mu.Lock()
		m.machine.release(f.model)
		f.model = 0
		f.mu.Unlock()
	}
	if m.Package == nil {
		return nil
	}
	if err := os.RemoveAll(m.compiled); err != nil {
		return &format.Error{Path: m.compiled, Err: err}
	}
	return m.Package.Close()
}
