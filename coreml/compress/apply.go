package compress

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"anelab/coreml/census"
	"anelab/coreml/mil"
	"anelab/quant"
)

// Options say what becomes of the weights that are selected.
type Options struct {
	Selection
	Palette quant.Options // without its axis, which follows from the op
	Linear  *Linear       // integers with a scale instead of palettes
	Gate    quant.Gate    // a weight that would lose more stays as it is; the zero Gate lets all pass
	Store   Store         // nil = Memory
}

// Linear is the form of integers.
type Linear struct {
	Spec     quant.LinearSpec // the type of the scale is that of the weight
	Symmetry quant.Symmetry
}

// Outcome is what became of one weight.
type Outcome struct {
	Weight
	After      string       // the encoding it ended in, as [census.Weight.Encoding]
	BytesAfter int64        // stored size; as before where it was kept
	Loss       quant.Report // of a weight that was compressed, or that a gate kept
	Shared     string       // the constant that its bytes are shared with, as function/name
}

// Progress is told how far the work is, in elements of weights.
type Progress func(done, total int64)

// Apply compresses the selected weights of a program and rewrites it. On an error the program is as it was. A weight that
// cannot be compressed stays, and its outcome says why. progress may be nil.
func Apply(ctx context.Context, p *mil.Program, o Options, progress Progress) ([]Outcome, error) {
	if err := o.Valid(); err != nil {
		return nil, err
	}
	weights, err := Select(p, o.Selection)
	if err != nil {
		return nil, err
	}
	if o.Store == nil {
		o.Store = Memory{}
	}
	a := applying{encoder: encoder{Options: &o}, progress: progress, made: map[key]*made{}}
	for i := range weights {
		if weights[i].Kept == "" {
			a.total += weights[i].Elements()
		}
	}
	outcomes := make([]Outcome, 0, len(weights))
	for i := range weights {
		out, err := a.one(ctx, &weights[i])
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", weights[i].Function, weights[i].Name, err)
		}
		outcomes = append(outcomes, *out)
	}
	for _, change := range a.changes {
		change()
	}
	return outcomes, nil
}

// Valid refuses options that no weight can meet.
func (o *Options) Valid() error {
	if o.Linear != nil {
		s := o.Linear.Spec
		if s.Bits != 4 && s.Bits != 8 {
			return fmt.Errorf("integers of %d bits, want 4 or 8", s.Bits)
		}
		return nil
	}
	bits, unique := o.Palette.Bits, o.Palette.Mode == quant.Unique
	if indexTypes[bits] == 0 && !(unique && bits == 0) {
		return fmt.Errorf("palettes of %d bits, want 1, 2, 3, 4, 6 or 8", bits)
	}
	if o.Palette.Vector > 1 && o.Palette.Mode != quant.KMeans {
		return fmt.Errorf("palettes of vectors in mode %s, want kmeans", o.Palette.Mode)
	}
	if v := o.Palette.Vector; v > 1 && o.Palette.Group%v != 0 {
		return fmt.Errorf("groups of %d channels do not hold whole vectors of %d", o.Palette.Group, v)
	}
	return nil
}

// key tells weights apart that are not the same bytes, or not the same channels of them.
type key struct {
	bytes any
	axis  int
	shape string
}

// made is a result that others may share.
type made struct {
	*encoded
	loss quant.Report
	kept string
	from string // function/name
}

// applying is one call of Apply.
type applying struct {
	encoder
	progress    Progress
	done, total int64
	made        map[key]*made
	changes     []func()
}

// one compresses a weight, or finds that it has been, and notes the change.
func (a *applying) one(ctx context.Context, w *Weight) (*Outcome, error) {
	out := &Outcome{Weight: *w, After: w.Encoding(), BytesAfter: w.Bytes()}
	if w.Kept != "" {
		return out, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	k := key{census.Identity(w.Parts[0]), w.Axis, w.Type.String()}
	m := a.made[k]
	if m == nil {
		var err error
		if m, err = a.make(ctx, w); err != nil {
			return nil, err
		}
		a.made[k] = m
	} else {
		out.Shared = m.from
	}
	a.done += w.Elements()
	a.tell(0)
	out.Kept, out.Loss = m.kept, m.loss
	if m.kept == "" {
		out.BytesAfter = m.bytes
		out.After = m.after
		a.rewrite(w, m.encoded)
	}
	return out, nil
}

// make compresses a weight.
func (a *applying) make(ctx context.Context, w *Weight) (*made, error) {
	a.encoder.progress = func(done, total int) { a.tell(w.Elements() * int64(done) / int64(total)) }
	m := &made{from: w.Function + "/" + w.Name}
	enc, dense, err := a.encode(ctx, w)
	var store storeError
	switch {
	case err != nil && (ctx.Err() != nil || errors.As(err, &store)):
		return nil, err
	case err != nil:
		m.kept = strings.TrimPrefix(err.Error(), "quant: ")
		return m, nil
	}
	if m.loss, err = quant.Compare(dense, enc.m); err != nil {
		return nil, err
	}
	enc.m = nil
	if err := a.Gate.Check(m.loss); a.Gate != (quant.Gate{}) && err != nil {
		m.kept = "would lose too much: " + strings.TrimPrefix(err.Error(), "quant: ")
	}
	m.encoded = enc
	return m, nil
}

// tell reports progress, part of a weight included.
func (a *applying) tell(part int64) {
	if a.progress != nil {
		a.progress(a.done+part, a.total)
	}
}

// rewrite turns the const into the op that yields the same name. Readers need no change.
func (a *applying) rewrite(w *Weight, enc *encoded) {
	next := enc.op
	next.Inputs, next.Attributes = slices.Clone(next.Inputs), slices.Clone(next.Attributes)
	next.Attributes = append(next.Attributes, mil.Attribute{Name: "name", Value: mil.Scalar(w.Name)})
	next.Outputs, next.Opset = w.Op.Outputs, w.Op.Opset
	sortOp(&next)
	op := w.Op
	a.changes = append(a.changes, func() { *op = next })
}

// sortOp puts operands and attributes in order of name.
func sortOp(op *mil.Op) {
	slices.SortFunc(op.Inputs, func(x, y mil.Argument) int { return strings.Compare(x.Name, y.Name) })
	slices.SortFunc(op.Attributes, func(x, y mil.Attribute) int { return strings.Compare(x.Name, y.Name) })
}
