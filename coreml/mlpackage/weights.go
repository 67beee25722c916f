package mlpackage

import (
	"cmp"
	"reflect"
	"slices"

	"anelab/coreml/mil"
	"anelab/coreml/mil/blob"
	"anelab/coreml/mlpackage/spec"
)

// weightsPath is what programs call the weights file.
const weightsPath = "@model_path/" + weightFile

// weightFiles sorts the constants of a program by the file they go to.
type weightFiles struct {
	names   []string // in order of first use
	members map[string][]*mil.Value
}

// gather collects the constants that lie, or will lie, in weights files, in execution order. Operands of a constexpr op come in
// the order of its signature, as converters write them.
func gather(p *mil.Program) *weightFiles {
	w := &weightFiles{members: map[string][]*mil.Value{}}
	for _, f := range p.Functions {
		for op := range f.Body.All() {
			for _, v := range stored(op, f.Opset) {
				name := weightsPath
				if b := v.Blob(); b != nil && b.File != "" {
					name = b.File
				}
				if w.members[name] == nil {
					w.names = append(w.names, name)
				}
				w.members[name] = append(w.members[name], v)
			}
		}
	}
	return w
}

// stored are the constants of an op that are not given in place.
func stored(op *mil.Op, opset mil.Opset) []*mil.Value {
	type operand struct {
		rank int
		v    *mil.Value
	}
	var list []operand
	sig, _ := mil.Lookup(op.Type, opset)
	for param, v := range op.Values() {
		if _, elsewhere := v.Content.(mil.Data); !elsewhere {
			continue
		}
		rank := 0
		if sig != nil {
			rank = slices.IndexFunc(sig.Params, func(p mil.Param) bool { return p.Name == param })
		}
		list = append(list, operand{rank, v})
	}
	slices.SortStableFunc(list, func(a, b operand) int { return cmp.Compare(a.rank, b.rank) })
	values := make([]*mil.Value, len(list))
	for i, o := range list {
		values[i] = o.v
	}
	return values
}

// original is the open file that already holds all of these constants where the program says, so that it can be copied as it is;
// nil if there is none.
func original(name string, values []*mil.Value) *blob.File {
	var from *blob.File
	for _, v := range values {
		b := v.Blob()
		if b == nil || b.File != name {
			return nil
		}
		f, e, ok := blob.Origin(b)
		if !ok || e.Offset != b.Offset || from != nil && f != from {
			return nil
		}
		from = f
	}
	return from
}

// place writes constants into a new file, one that several ops share once, and notes where they are.
func place(w *blob.Writer, name string, values []*mil.Value, places spec.Places) error {
	type spot struct {
		file   any
		offset uint64
	}
	written := map[spot]uint64{}
	for _, v := range values {
		data := v.Content.(mil.Data)
		key := spot{file: data}
		if b := v.Blob(); b != nil {
			if f, e, ok := blob.Origin(b); ok {
				key = spot{f, e.Offset}
			}
			data = b.Source
		}
		shareable := reflect.TypeOf(key.file).Comparable()
		if shareable {
			if offset, ok := written[key]; ok {
				places[v] = &mil.Blob{File: name, Offset: offset}
				continue
			}
		}
		if data == nil {
			data = v.Blob() // says that its file is not open
		}
		offset, err := w.Add(v.Type, data)
		if err != nil {
			return err
		}
		if shareable {
			written[key] = offset
		}
		places[v] = &mil.Blob{File: name, Offset: offset}
	}
	return nil
}
