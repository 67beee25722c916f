package spec

import (
	"fmt"

	"anelab/coreml/mil"
	"anelab/internal/format"
)

// Model is a serialized model as a whole.
type Model struct {
	Program     *mil.Program
	Description *mil.Description
	Updatable   Updatable
	Kept        *Kept
}

// Updatable says whether a model can be trained on the device.
type Updatable bool

// Kept holds what a codec did not understand, by the part that it belongs to, so that it can be written back. It is nil for a
// model that was not read.
type Kept struct {
	data   string               // what was read
	fields map[any][]span       // fields of the message behind a *mil.Op, *mil.Function, …
	types  map[*mil.Type]string // whole types with unknown fields somewhere inside
	values map[*mil.Value]string
}

// span is a piece of what was read.
type span struct{ from, to int }

// add keeps a piece; one that follows the piece before makes it longer. It returns about how much memory that takes.
func (k *Kept) add(part any, at span) (bytes int) {
	const sizeEntry, sizeSpan = 256, 48 // of a map, and of a list that doubles
	list := k.fields[part]
	if n := len(list); n > 0 && list[n-1].to == at.from {
		list[n-1].to = at.to
		return 0
	}
	if k.fields == nil {
		k.fields = map[any][]span{}
	}
	k.fields[part] = append(list, at)
	if len(list) == 0 {
		return sizeEntry
	}
	return sizeSpan
}

// has reports whether there is something kept for a part.
func (k *Kept) has(part any) bool { return k != nil && len(k.fields[part]) > 0 }

// modelTypes are fields of the oneof that says what a model is.
var modelTypes = map[int]string{
	200: "a pipeline classifier", 201: "a pipeline regressor", 202: "a pipeline", 300: "a GLM regressor", 301: "a support vector regressor",
	302: "a tree ensemble regressor", 303: "a neural network regressor", 304: "a Bayesian probit regressor", 400: "a GLM classifier",
	401: "a support vector classifier", 402: "a tree ensemble classifier", 403: "a neural network classifier", 404: "a nearest neighbors classifier",
	500: "a neural network", 501: "an item similarity recommender", 555: "a custom model", 556: "a linked model", 560: "a class confidence thresholder",
	600: "a one-hot encoder", 601: "an imputer", 602: "a feature vectorizer", 603: "a dictionary vectorizer", 604: "a scaler",
	606: "a categorical mapping", 607: "a normalizer", 609: "an array feature extractor", 610: "a non-maximum suppression", 900: "an identity",
	2000: "a text classifier", 2001: "a word tagger", 2002: "a vision feature print", 2003: "a sound analysis preprocessor", 2004: "a gazetteer",
	2005: "a word embedding", 2006: "an audio feature print", 3000: "a serialized model",
}

// Decode reads a model. path is for messages. Constants that lie in weights files are left for [anelab/coreml/mil/blob.Files].
func Decode(path, data string) (*Model, error) {
	d := &decoder{message: newMessage(path, "Model", data), kept: &Kept{data: data}}
	m := &Model{Kept: d.kept}
	for d.next() {
		d.modelField(m)
	}
	if d.err != nil {
		return nil, d.err
	}
	if m.Program == nil {
		return nil, &format.Error{Path: path, Field: "Model", Got: "no program", Want: "an ML program", Err: ErrModelType}
	}
	if m.Description == nil {
		m.Description = &mil.Description{}
	}
	mil.Describe(m.Program, m.Description)
	return m, nil
}

func newMessage(path, name, data string) *message {
	return &message{name: name, buf: data, b: &budget{path: path, left: 4*int64(len(data)) + spareMemory}}
}

// decoder reads the messages of a model.
type decoder struct {
	*message
	kept    *Kept
	version int
	unknown int // fields met that nobody understands
}

func (d *decoder) modelField(m *Model) {
	switch what := modelTypes[d.num]; {
	case d.num == 1:
		d.version = int(int32(d.integer()))
	case d.num == 2 && m.Description == nil:
		in := d.inner("ModelDescription")
		m.Description = d.description(&in)
		d.merge(&in)
	case d.num == 10:
		m.Updatable = d.integer() != 0
	case d.num == 502 && m.Program == nil:
		in := d.inner("Program")
		m.Program = d.program(&in)
	case d.num == 502 || d.num == 2:
		d.fail(ErrTwice, fmt.Sprintf("field %d", d.num))
	case what != "":
		d.fail(ErrModelType, what)
	default:
		d.keep(d.message, m)
	}
	if m.Program != nil {
		m.Program.SpecVersion = d.version
	}
}

// keep sets aside the current field of a message for the part it belongs to.
func (d *decoder) keep(in *message, part any) {
	d.unknown++
	at := in.base + in.at
	in.charge(d.kept.add(part, span{at - len(in.raw), at}))
}

// sizeKept is about what an entry of a map of whole types or values takes.
const sizeKept = 256

// Places says where in weights files constants lie that the program holds otherwise.
type Places map[*mil.Value]*mil.Blob

// Encode writes a model. Fields kept from reading are written behind the known ones of their message.
func Encode(m *Model, places Places) []byte {
	e := &encoder{kept: m.Kept, places: places}
	e.integer(1, int64(m.Program.SpecVersion))
	e.nest(2, func() { e.description(m.Description) })
	if m.Updatable {
		e.integer(10, 1)
	}
	e.nest(502, func() { e.program(m.Program) })
	e.raw(m)
	return e.buf
}

// encoder writes the messages of a model.
type encoder struct {
	writer
	kept   *Kept
	places Places
}

// raw writes the fields kept for a part.
func (e *encoder) raw(part any) {
	if e.kept == nil {
		return
	}
	for _, at := range e.kept.fields[part] {
		e.buf = append(e.buf, e.kept.data[at.from:at.to]...)
	}
}
