package device

import "anelab/internal/format"

// Processor is where an op runs.
type Processor string

// The processors of a Mac. Unplaced ops cost nothing at run time: constants, and weights that are unpacked when the model is loaded.
const (
	ANE      Processor = "ane"
	GPU      Processor = "gpu"
	CPU      Processor = "cpu"
	Unplaced Processor = ""
)

// Placement is where Core ML means to run one op.
type Placement struct {
	Op        string // type: "conv"
	Output    string // name of the first result
	Processor Processor
	Supported []Processor // those that could
	Weight    float64     // share of the whole model's work, as Core ML estimates it; 0 if it does not say
}

// Plan is the placement of every op of a function, in program order.
type Plan []Placement

// Count is how many ops run on a processor.
func (p Plan) Count(on Processor) int {
	n := 0
	for _, x := range p {
		if x.Processor == on {
			n++
		}
	}
	return n
}

// Placed is how many ops run anywhere.
func (p Plan) Placed() int { return len(p) - p.Count(Unplaced) }

// Off lists the ops that run, but not on a processor.
func (p Plan) Off(on Processor) Plan {
	var list Plan
	for _, x := range p {
		if x.Processor != on && x.Processor != Unplaced {
			list = append(list, x)
		}
	}
	return list
}

// answer is what a completion handler was called with, retained.
type answer struct{ result, fault id }

// Plan asks Core ML where it means to run the ops of a function. It needs macOS 14.4.
func (m *Model) Plan(name string) (plan Plan, err error) {
	if _, err := m.function(name); err != nil {
		return nil, err
	}
	rt := m.machine
	return plan, rt.scope(func() error {
		class := rt.class("MLComputePlan")
		if class == 0 {
			return &format.Error{Path: m.Path, Field: name, Want: "macOS 14.4 for compute plans", Err: ErrSystem}
		}
		configuration, err := m.configuration(name)
		if err != nil {
			return err
		}
		defer rt.release(configuration)
		a := m.loadPlan(class, configuration)
		defer rt.release(a.result)
		defer rt.release(a.fault)
		if a.result == 0 {
			return rt.refused(ErrPlan, m.Path, name, a.fault)
		}
		functions := rt.send(rt.send(rt.send(a.result, "modelStructure"), "program"), "functions")
		f := rt.send(functions, "objectForKey:", rt.text(name))
		if f == 0 {
			return &format.Error{Path: m.Path, Field: name, Got: "no such function in the plan", Err: ErrPlan}
		}
		plan = rt.placements(nil, a.result, rt.send(f, "block"))
		return nil
	})
}

// loadPlan waits for the completion handler. It runs on a thread of the system, inside a pool that is drained when it returns, so it
// retains what it passes on.
func (m *Model) loadPlan(class, configuration id) answer {
	rt := m.machine
	done := make(chan answer, 1)
	block := rt.block(2, func(args []uintptr) {
		done <- answer{rt.retain(id(args[0])), rt.retain(id(args[1]))}
	})
	defer rt.release(block)
	rt.send(class, "loadContentsOfURL:configuration:completionHandler:", rt.url(m.compiled), configuration, block)
	return <-done
}

// placements walks a block and the blocks inside its ops.
func (m machine) placements(plan Plan, from, block id) Plan {
	for op := range m.each(m.send(block, "operations")) {
		p := Placement{Op: m.goText(m.send(op, "operatorName"))}
		for output := range m.each(m.send(op, "outputs")) {
			p.Output = m.goText(m.send(output, "name"))
			break
		}
		usage := m.send(from, "computeDeviceUsageForMLProgramOperation:", op)
		p.Processor = m.processor(m.send(usage, "preferredComputeDevice"))
		for device := range m.each(m.send(usage, "supportedComputeDevices")) {
			p.Supported = append(p.Supported, m.processor(device))
		}
		if cost := m.send(from, "estimatedCostOfMLProgramOperation:", op); cost != 0 {
			p.Weight = m.sendFloat(cost, "weight")
		}
		plan = append(plan, p)
		for inner := range m.each(m.send(op, "blocks")) {
			plan = m.placements(plan, from, inner)
		}
	}
	return plan
}

// processor tells an MLComputeDevice by its class.
func (m machine) processor(device id) Processor {
	if device == 0 {
		return Unplaced
	}
	for class, p := range map[string]Processor{"MLNeuralEngineComputeDevice": ANE, "MLGPUComputeDevice": GPU} {
		if m.send(device, "isKindOfClass:", m.class(class))&0xff != 0 {
			return p
		}
	}
	return CPU
}
