package device

import (
	"os"
	"runtime"
	"strings"

	"anelab/coreml/mil"
	"anelab/coreml/mlpackage"
)

// The compute plan of the fake: convolutions and linears go to the Neural Engine, what moves integers to the CPU, the rest to the GPU.
// Constants are placed nowhere.

// program is the contents of an MLComputePlan and of what it leads to.
type program struct{ pkg *mlpackage.Package }

func init() {
	for name, m := range map[string]func(f *fake, self id, o *object, args []id) id{
		"+MLComputePlan loadContentsOfURL:configuration:completionHandler:": func(f *fake, _ id, _ *object, args []id) id {
			f.retain(args[2])
			go f.answer(args[2], f.objects[args[0]].value.(string))
			return 0
		},
		"MLComputePlan modelStructure": func(f *fake, _ id, o *object, _ []id) id { return f.borrow("MLModelStructure", o.value) },
		"MLModelStructure program":     func(f *fake, _ id, o *object, _ []id) id { return f.borrow("MLModelStructureProgram", o.value) },
		"MLModelStructureProgram functions": func(f *fake, _ id, o *object, _ []id) id {
			values := map[string]id{}
			var all []id
			for _, fn := range o.value.(program).pkg.Program.Functions {
				values[fn.Name] = f.borrow("MLModelStructureProgramFunction", fn.Body)
				all = append(all, values[fn.Name])
			}
			return f.borrow("NSMutableDictionary", values, all...)
		},
		"MLModelStructureProgramFunction block": func(f *fake, _ id, o *object, _ []id) id {
			return f.borrow("MLModelStructureProgramBlock", o.value)
		},
		"MLModelStructureProgramBlock operations": func(f *fake, _ id, o *object, _ []id) id {
			var all []id
			for _, op := range o.value.(*mil.Block).Ops {
				all = append(all, f.borrow("MLModelStructureProgramOperation", op))
			}
			return f.borrow("NSMutableArray", nil, all...)
		},
		"MLModelStructureProgramOperation operatorName": func(f *fake, _ id, o *object, _ []id) id { return f.borrow("NSString", o.value.(*mil.Op).Type) },
		"MLModelStructureProgramOperation outputs": func(f *fake, _ id, o *object, _ []id) id {
			var all []id
			for _, out := range o.value.(*mil.Op).Outputs {
				all = append(all, f.borrow("MLModelStructureProgramNamedValueType", out.Name))
			}
			return f.borrow("NSMutableArray", nil, all...)
		},
		"MLModelStructureProgramNamedValueType name": func(f *fake, _ id, o *object, _ []id) id { return f.borrow("NSString", o.value) },
		"MLModelStructureProgramOperation blocks":    func(f *fake, _ id, _ *object, _ []id) id { return f.borrow("NSMutableArray", nil) },
		"MLComputePlan computeDeviceUsageForMLProgramOperation:": func(f *fake, _ id, _ *object, args []id) id {
			op := f.objects[args[0]].value.(*mil.Op)
			if op.Type == "const" || op.IsConstexpr() {
				return 0
			}
			return f.borrow("MLComputePlanDeviceUsage", deviceOf(op))
		},
		"MLComputePlan estimatedCostOfMLProgramOperation:": func(f *fake, _ id, _ *object, args []id) id {
			if f.objects[args[0]].value.(*mil.Op).Type == "const" {
				return 0
			}
			return f.borrow("MLComputePlanCost", 0.25)
		},
		"MLComputePlanDeviceUsage preferredComputeDevice": func(f *fake, _ id, o *object, _ []id) id { return f.borrow(o.value.(string), nil) },
		"MLComputePlanDeviceUsage supportedComputeDevices": func(f *fake, _ id, o *object, _ []id) id {
			return f.borrow("NSMutableArray", nil, f.borrow("MLCPUComputeDevice", nil), f.borrow(o.value.(string), nil))
		},
	} {
		methods[name] = answering(m)
	}
}

func deviceOf(op *mil.Op) string {
	switch {
	case op.Type == "conv" || op.Type == "linear":
		return "MLNeuralEngineComputeDevice"
	case strings.Contains(op.Type, "slice") || op.Type == "cast":
		return "MLCPUComputeDevice"
	}
	return "MLGPUComputeDevice"
}

// answer calls a completion handler from a thread of the system, whose pool is drained when the handler returns.
func (f *fake) answer(block id, compiled string) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pool := f.push()
	f.mu.Lock()
	plan, fault := f.plan(compiled)
	f.objects[block].value.(func(...uintptr))(uintptr(plan), uintptr(fault))
	f.mu.Unlock()
	f.pop(pool)
	f.mu.Lock()
	f.drop(block)
	f.mu.Unlock()
}

func (f *fake) plan(compiled string) (plan, fault id) {
	if text, ok := f.failing["plan"]; ok {
		return 0, f.fault(text)
	}
	source, err := os.ReadFile(compiled + "/source")
	if err != nil {
		return 0, f.fault(err.Error())
	}
	pkg, err := mlpackage.Open(string(source))
	if err != nil {
		return 0, f.fault(err.Error())
	}
	f.t.Cleanup(func() { pkg.Close() })
	return f.borrow("MLComputePlan", program{pkg: pkg}), 0
}
