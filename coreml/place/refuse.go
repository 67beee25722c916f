package place

import (
	"fmt"
	"slices"

	"anelab/coreml/mil"
)

// scope knows the types and constants of one function.
type scope struct {
	types  map[string]mil.Type
	values map[string]*mil.Value // constants
	fixed  map[string]bool       // constants and what constexpr ops yield
}

func scopeOf(f *mil.Function) *scope {
	s := &scope{types: map[string]mil.Type{}, values: map[string]*mil.Value{}, fixed: map[string]bool{}}
	for _, in := range f.Inputs {
		s.types[in.Name] = in.Type
	}
	for op := range f.Body.All() {
		for _, b := range op.Blocks {
			for _, in := range b.Inputs {
				s.types[in.Name] = in.Type
			}
		}
		for _, out := range op.Outputs {
			s.types[out.Name] = out.Type
			s.fixed[out.Name] = op.Type == "const" || op.IsConstexpr()
			if op.Type == "const" {
				s.values[out.Name] = op.Attribute("val")
			}
		}
	}
	return s
}

// operand is one thing that an op is given.
type operand struct {
	param string
	typ   mil.Type
	value *mil.Value // nil if it is not a plain constant
	fixed bool       // known before the program runs
}

func (s *scope) operands(op *mil.Op) []operand {
	var all []operand
	for _, arg := range op.Inputs {
		for _, b := range arg.Bindings {
			o := operand{param: arg.Name, value: b.Value, fixed: b.Value != nil}
			if b.Value != nil {
				o.typ = b.Value.Type
			} else {
				o.typ, o.value, o.fixed = s.types[b.Name], s.values[b.Name], s.fixed[b.Name]
			}
			all = append(all, o)
		}
	}
	return all
}

// find is the first operand of a parameter.
func find(all []operand, param string) (operand, bool) {
	i := slices.IndexFunc(all, func(o operand) bool { return o.param == param })
	if i < 0 {
		return operand{}, false
	}
	return all[i], true
}

// refuse is the first rule that keeps an op off the engine; nil if there is none.
func (s *scope) refuse(op *mil.Op, limits *Limits) *Refusal {
	operands := s.operands(op)
	for _, judge := range []func(*mil.Op, []operand, *Limits) *Refusal{byName, byIndex, byResult, byType, byPlace, byWindow, byDimension} {
		if r := judge(op, operands, limits); r != nil {
			return r
		}
	}
	return nil
}

// byName refuses ops that the engine does not have.
func byName(op *mil.Op, _ []operand, _ *Limits) *Refusal {
	if rule, ok := unavailable[op.Type]; ok {
		return &Refusal{rule, fmt.Sprintf("the engine has no %s", op.Type)}
	}
	return nil
}

// byIndex refuses reads at places that are computed: tables that are looked up at run time.
func byIndex(op *mil.Op, operands []operand, _ *Limits) *Refusal {
	switch op.Type {
	case "gather", "gather_along_axis", "gather_nd":
		if o, ok := find(operands, "indices"); ok && !o.fixed {
			return &Refusal{RuleGather, fmt.Sprintf("indices of type %s that are computed", o.typ.DType)}
		}
	}
	return nil
}

// computed reports whether the engine computes with an element type. fp32 it only casts from and to.
func computed(d mil.DType, opType string) bool {
	switch d {
	case mil.Float16, mil.Bool, mil.Int8, mil.UInt8, mil.Int16, mil.UInt16, mil.String, mil.NoType, mil.Int4, mil.UInt4:
		return true
	case mil.Float32:
		return opType == "cast" || carries(opType)
	}
	return false
}

// carries reports whether an op only takes tensors in or out of the program.
func carries(opType string) bool {
	return opType == "tensor_buffer_to_tensor" || opType == "tensor_to_tensor_buffer"
}

// byResult refuses results of types that the engine does not write.
func byResult(op *mil.Op, _ []operand, _ *Limits) *Refusal {
	for _, out := range op.Outputs {
		t, ok := out.Type.AsTensor()
		if !ok || computed(t.DType, op.Type) {
			continue
		}
		switch {
		case carries(op.Type):
			return &Refusal{RulePort, fmt.Sprintf("a port of %s", t.DType)}
		case op.Type == "reduce_argmax" || op.Type == "reduce_argmin" || op.Type == "argsort" || op.Type == "topk":
			return &Refusal{RuleOutput, fmt.Sprintf("indices of type %s", t.DType)}
		}
		return &Refusal{RuleType, fmt.Sprintf("a result of %s", t.DType)}
	}
	return nil
}

// dataOperands are the operands that ops compute with; the others are settings, which may be of any type.
var dataOperands = []string{"x", "y", "a", "b", "cond", "input", "values", "data", "updates", "update", "weight", "bias", "query", "key", "value", "attn_mask"}

// byType refuses operands of types that the engine does not read.
func byType(op *mil.Op, operands []operand, _ *Limits) *Refusal {
	var constant *Refusal
	for _, o := range operands {
		t, ok := o.typ.AsTensor()
		if !ok || !slices.Contains(dataOperands, o.param) || computed(t.DType, op.Type) {
			continue
		}
		switch {
		case carries(op.Type):
			return &Refusal{RulePort, fmt.Sprintf("a port of %s", t.DType)}
		case o.fixed:
			constant = &Refusal{RuleOperand, fmt.Sprintf("a constant %s of %s", o.param, t.DType)}
		case constant == nil:
			constant = &Refusal{RuleType, fmt.Sprintf("%s of %s", o.param, t.DType)}
		}
	}
	return constant
}

// byPlace refuses slices that begin at a computed place, and shapes that are open.
func byPlace(op *mil.Op, operands []operand, _ *Limits) *Refusal {
	switch op.Type {
	case "slice_by_size", "slice_by_index", "slice_update":
		for _, o := range operands {
			if (o.param == "begin" || o.param == "end" || o.param == "size") && !o.fixed {
				return &Refusal{RuleDynamic, fmt.Sprintf("%s is computed", o.param)}
			}
		}
	}
	for _, out := range op.Outputs {
		if t, ok := out.Type.AsTensor(); ok && !t.Static() {
			return &Refusal{RuleDynamic, fmt.Sprintf("an open shape, %s", mil.ShapeString(t.Shape))}
		}
	}
	return nil
}

// byWindow refuses windows of convolutions and pools.
func byWindow(op *mil.Op, operands []operand, limits *Limits) *Refusal {
	if op.Type == "max_pool" {
		if o, ok := find(operands, "kernel_sizes"); ok && o.value != nil {
			sizes, _ := o.value.Ints()
			for _, n := range sizes {
				if n > limits.Pool {
					return &Refusal{RuleKernel, fmt.Sprintf("a window of %d, more than %d", n, limits.Pool)}
				}
			}
		}
	}
	w, ok := find(operands, "weight")
	if !ok || op.Type != "conv" || len(w.typ.Shape) < 3 {
		return nil
	}
	window := w.typ.Shape[2:]
	for _, n := range window {
		if n > limits.Kernel {
			return &Refusal{RuleKernel, fmt.Sprintf("a kernel of %s, more than %d", mil.ShapeString(window), limits.Kernel)}
		}
	}
	groups := int64(1)
	if g, ok := find(operands, "groups"); ok && g.value != nil {
		groups, _ = g.value.Int()
	}
	if groups >= limits.Depthwise && w.typ.Shape[1] == 1 && product(window) > 1 {
		return &Refusal{RuleDepthwise, fmt.Sprintf("%d channels, each with a kernel of its own", groups)}
	}
	return nil
}

// byDimension refuses what the engine cannot address. The outputs of a convolution or linear are no dimension to it: an LM head of
// 262,144 rows runs in pieces, and what follows it does not (limits.csv, argmax tail).
func byDimension(op *mil.Op, operands []operand, limits *Limits) *Refusal {
	inPieces := op.Type == "conv" || op.Type == "linear"
	for _, o := range operands {
		t, ok := o.typ.AsTensor()
		if !ok || !slices.Contains(dataOperands, o.param) || inPieces && o.param == "bias" {
			continue
		}
		shape := t.Shape
		if inPieces && o.param == "weight" && len(shape) > 0 {
			shape = shape[1:]
		}
		if tooWide(shape, limits) {
			return &Refusal{RuleDimension, fmt.Sprintf("%s %s has a dimension of more than %d", o.param, mil.ShapeString(t.Shape), limits.Dimension)}
		}
		if op.Type == "matmul" && len(shape) > limits.Rank {
			return &Refusal{RuleDimension, fmt.Sprintf("%s of rank %d, more than %d", o.param, len(shape), limits.Rank)}
		}
	}
	for _, out := range op.Outputs {
		if t, ok := out.Type.AsTensor(); ok && !inPieces && tooWide(t.Shape, limits) {
			return &Refusal{RuleDimension, fmt.Sprintf("a result of %s, a dimension of more than %d", mil.ShapeString(t.Shape), limits.Dimension)}
		}
	}
	if n := contraction(op, operands); op.Type == "matmul" && n > limits.Contraction {
		return &Refusal{RuleDimension, fmt.Sprintf("a contraction over %d, more than %d", n, limits.Contraction)}
	}
	return nil
}

func tooWide(shape []int64, limits *Limits) bool {
	return len(shape) > 0 && slices.Max(shape) > limits.Dimension
}

// contraction is the length of a matmul's sums.
func contraction(op *mil.Op, operands []operand) int64 {
	x, ok := find(operands, "x")
	if n := len(x.typ.Shape); ok && n > 0 {
		if t, ok := find(operands, "transpose_x"); ok && n > 1 && isTrue(t.value) {
			return x.typ.Shape[n-2]
		}
		return x.typ.Shape[n-1]
	}
	return 0
}

func isTrue(v *mil.Value) bool {
	if v == nil {
		return false
	}
	n, _ := v.Int()
	return n != 0
}

func product(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	return n
}
