package torchpickle

import (
	"fmt"

	"github.com/nlpodyssey/gopickle/types"

	"anelab/quant"
)

// storageClasses are torch's types of element.
var storageClasses = map[string]quant.DType{
	"FloatStorage": quant.F32, "HalfStorage": quant.F16, "BFloat16Storage": quant.BF16, "DoubleStorage": quant.F64,
	"LongStorage": quant.I64, "IntStorage": quant.I32, "CharStorage": quant.I8, "ByteStorage": quant.U8, "BoolStorage": quant.Bool,
}

// dtypeNames are values that metadata may mention; they mean nothing to us.
var dtypeNames = map[string]bool{
	"float32": true, "float": true, "float16": true, "half": true, "bfloat16": true, "float64": true, "double": true, "int64": true, "long": true,
	"int32": true, "int": true, "int16": true, "short": true, "int8": true, "uint8": true, "bool": true,
}

// storageClass stands for a class of storageClasses, dtypeName for a value of dtypeNames. Neither can be called.
type (
	storageClass quant.DType
	dtypeName    string
)

// allowed is the allow-list.
func allowed(module, name string) error {
	if module == "collections" && name == "OrderedDict" {
		return nil // gopickle resolves it itself
	}
	_, err := findClass(module, name)
	return err
}

// findClass returns what a name of the allow-list stands for.
func findClass(module, name string) (any, error) {
	switch module + " " + name {
	case "torch._utils _rebuild_tensor_v2":
		return callable(rebuildTensor), nil
	case "torch._utils _rebuild_parameter":
		return callable(rebuildParameter), nil
	}
	if d, ok := storageClasses[name]; ok && module == "torch" {
		return storageClass(d), nil
	}
	if dtypeNames[name] && module == "torch" {
		return dtypeName(name), nil
	}
	return nil, fmt.Errorf("class %q of module %q is not one that tensors need", clip(name), clip(module))
}

// callable is a function that REDUCE may call.
type callable func(args []any) (any, error)

// Call implements the interface of gopickle.
func (f callable) Call(args ...any) (any, error) { return f(args) }

// rebuildTensor is _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks[, metadata]).
func rebuildTensor(args []any) (any, error) {
	if len(args) != 6 && len(args) != 7 {
		return nil, fmt.Errorf("_rebuild_tensor_v2: %d arguments, want 6 or 7", len(args))
	}
	s, ok := args[0].(*storage)
	if !ok {
		return nil, fmt.Errorf("_rebuild_tensor_v2: got %s, want a storage", kindOf(args[0]))
	}
	offset, ok := args[1].(int)
	if !ok || offset < 0 {
		return nil, fmt.Errorf("_rebuild_tensor_v2: offset: got %s, want a whole number", kindOf(args[1]))
	}
	size, err := sizes(args[2])
	if err != nil {
		return nil, fmt.Errorf("_rebuild_tensor_v2: size: %w", err)
	}
	stride, err := sizes(args[3])
	if err != nil {
		return nil, fmt.Errorf("_rebuild_tensor_v2: stride: %w", err)
	}
	return newView(s, offset, size, stride)
}

// rebuildParameter is _rebuild_parameter(tensor, requires_grad, hooks): the tensor.
func rebuildParameter(args []any) (any, error) {
	if len(args) == 3 {
		if v, ok := args[0].(*view); ok {
			return v, nil
		}
	}
	return nil, fmt.Errorf("_rebuild_parameter: want a tensor and two more arguments")
}

// sizes reads a tuple of whole numbers.
func sizes(arg any) ([]int, error) {
	tuple, ok := arg.(*types.Tuple)
	if !ok || tuple.Len() > maxRank {
		return nil, fmt.Errorf("got %s, want a tuple of at most %d numbers", kindOf(arg), maxRank)
	}
	n := make([]int, tuple.Len())
	for i := range n {
		v, ok := tuple.Get(i).(int)
		if !ok || v < 0 {
			return nil, fmt.Errorf("got %s, want a whole number", kindOf(tuple.Get(i)))
		}
		n[i] = v
	}
	return n, nil
}
