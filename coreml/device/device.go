package device

import (
	"errors"
	"strconv"

	"anelab/internal/format"
)

// ErrUnavailable says that there is no Core ML here.
var ErrUnavailable = errors.New("no Core ML in this program")

// What else can be wrong.
var (
	ErrSystem       = errors.New("this macOS is too old")
	ErrCompile      = errors.New("model not compiled by Core ML")
	ErrLoad         = errors.New("model not loaded by Core ML")
	ErrPredict      = errors.New("prediction refused by Core ML")
	ErrArray        = errors.New("array not made by Core ML")
	ErrPlan         = errors.New("no plan from Core ML")
	ErrFunction     = errors.New("no such function")
	ErrMissingInput = errors.New("input missing")
	ErrUnknownPort  = errors.New("no such port")
	ErrType         = errors.New("wrong element type")
	ErrShape        = errors.New("wrong shape")
	ErrData         = errors.New("elements do not fit the shape")
	ErrState        = errors.New("state missing or of another form")
	ErrClosed       = errors.New("used after Close")
)

// Available is nil where Core ML can be used; otherwise it wraps [ErrUnavailable] and says what to do.
func Available() error {
	_, err := system()
	return err
}

// Units are the processors that Core ML may choose from. It is a preference: what cannot run on one runs on another, and only
// [Model.Plan] says so. The numbers are those of MLComputeUnits.
type Units int

// The choices that Core ML offers.
const (
	CPUOnly   Units = 0
	CPUAndGPU Units = 1
	All       Units = 2
	CPUAndANE Units = 3
)

var unitNames = [...]string{CPUOnly: "cpu", CPUAndGPU: "cpu+gpu", All: "all", CPUAndANE: "cpu+ane"}

// String is the name on command lines.
func (u Units) String() string {
	if u < 0 || int(u) >= len(unitNames) {
		return "units " + strconv.Itoa(int(u))
	}
	return unitNames[u]
}

// ParseUnits finds units by their name.
func ParseUnits(name string) (Units, error) {
	for u, known := range unitNames {
		if name == known {
			return Units(u), nil
		}
	}
	return 0, &format.Error{Field: "units", Got: strconv.Quote(name), Want: "cpu, cpu+gpu, all or cpu+ane", Fix: format.DidYouMean(name, unitNames[:])}
}

// Failure is what Core ML says of something that went wrong.
type Failure struct {
	Domain string
	Code   int
	Text   string
}

// Error is Core ML's own text.
func (f *Failure) Error() string { return f.Text }

// failure reads an NSError. Core ML puts what its compiler said into the error underneath.
func (m machine) failure(fault id) *Failure {
	if fault == 0 {
		return &Failure{Text: "no reason given"}
	}
	f := &Failure{Domain: m.goText(m.send(fault, "domain")), Code: int(m.send(fault, "code")), Text: m.goText(m.send(fault, "localizedDescription"))}
	under := m.send(m.send(fault, "userInfo"), "objectForKey:", m.text("NSUnderlyingError"))
	if text := m.goText(m.send(under, "localizedDescription")); text != "" && text != f.Text {
		f.Text += ": " + text
	}
	return f
}

// refused is the error for what Core ML answered with an NSError instead of a result.
func (m machine) refused(rule error, path, field string, fault id) error {
	f := m.failure(fault)
	return &format.Error{Path: path, Field: field, Err: errors.Join(rule, f), Fix: remedy(f.Text)}
}
