package mil

// Description is what a model says about itself to its callers: ports, states and texts. It repeats what the program declares,
// and a loader refuses a model whose description and program disagree.
type Description struct {
	Interface                              // of a model with one function, which is then called main
	Functions        []FunctionDescription // of a model with several functions; Interface is then empty
	DefaultFunction  string                // called if no function is named
	PredictedFeature string                // classifiers
	PredictedProbs   string                // classifiers
	TrainingInputs   []Feature             // updatable models
	Metadata         Metadata
}

// FunctionDescription is the interface of one function of several.
type FunctionDescription struct {
	Name string
	Interface
	PredictedFeature string
	PredictedProbs   string
}

// Interface is what goes in and out.
type Interface struct {
	Inputs, Outputs, States []Feature
}

// Feature is one port.
type Feature struct {
	Name     string
	Doc      string // short description
	Kind     FeatureKind
	Optional Optional
	Array    *ArrayFeature // of arrays and states
	Other    string        // encoded type of a port of kind OtherFeature
}

// Optional says whether a port may be left unset.
type Optional bool

// FeatureKind is the kind of a port.
type FeatureKind uint8

// The kinds of ports. What is neither array nor state (images, dictionaries, plain numbers, …) is kept encoded.
const (
	OtherFeature FeatureKind = iota
	ArrayPort
	StatePort
)

// ArrayFeature is the type of an array port or state.
type ArrayFeature struct {
	DType    DType
	Shape    []int64
	Flexible *Flexible // other shapes that the port takes; Default is Shape
}

// Metadata are texts for people.
type Metadata struct {
	Doc, Version, Author, License string
	UserDefined                   []UserDefined // sorted by key
}

// UserDefined is one entry of a model's free metadata.
type UserDefined struct{ Key, Value string }

// Of is the interface of a function; nil if the description does not speak of it.
func (d *Description) Of(function string) *Interface {
	for i := range d.Functions {
		if d.Functions[i].Name == function {
			return &d.Functions[i].Interface
		}
	}
	if len(d.Functions) == 0 && function == MainFunction {
		return &d.Interface
	}
	return nil
}

// Describe copies the shapes that ports may take to the inputs of a program.
func Describe(p *Program, d *Description) {
	for _, f := range p.Functions {
		face := d.Of(f.Name)
		if face == nil {
			continue
		}
		for _, port := range face.Inputs {
			if in := f.Input(port.Name); in != nil && port.Array != nil {
				in.Flexible = port.Array.Flexible
			}
		}
	}
}

// MainFunction is the name of the only function of a model that has one.
const MainFunction = "main"
