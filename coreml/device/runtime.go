package device

import (
	"iter"
	"runtime"
)

// id refers to an Objective-C object, or is a machine word given to one; 0 is nil.
type id uintptr

// messages is all that the package needs of an Objective-C runtime. Every argument and result of the messages it sends is one
// machine word; the weight of an op, a double, is the exception.
type messages interface {
	class(name string) id                                            // 0 if this system has no such class
	responds(to id, selector string) bool                            // methods of newer systems are asked for before they are sent
	send(to id, selector string, args ...id) id                      // to nil: 0
	sendFault(to id, selector string, args ...id) (result, fault id) // appends the NSError** that the selector ends with
	sendFloat(to id, selector string, args ...id) float64            // of methods that return a double

	push() (pool uintptr) // an autorelease pool of this thread
	pop(pool uintptr)

	text(s string) id   // an NSString, borrowed
	goText(s id) string // of an NSString; "" of nil

	block(arity int, f func(args []uintptr)) id            // ours to release
	memory(address uintptr, bytes int) []byte              // valid for as long as Core ML says that the address is
	pixelBuffer(width, height int) (buffer id, status int) // one fp16 number per pixel, on an IOSurface; ours to release
	hardware() (chip, model string)
}

// machine is a runtime with the conversions that everything here uses.
type machine struct{ messages }

// scope runs f on one thread, inside an autorelease pool of that thread. What f borrows from the runtime must not leave it.
func (m machine) scope(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pool := m.push()
	defer m.pop(pool)
	return f()
}

func (m machine) retain(x id) id { return m.send(x, "retain") }

// release takes back one reference; nil has none.
func (m machine) release(x id) {
	if x != 0 {
		m.send(x, "release")
	}
}

// create is alloc and an initializer without faults; the object is ours.
func (m machine) create(class string) id {
	return m.send(m.send(m.class(class), "alloc"), "init")
}

// Host is the machine that runs the models.
type Host struct {
	Chip    string // "Apple M4 Pro"
	Model   string // "Mac16,11"
	OS      string // as macOS says it: "Version 26.1 (Build 25B78)"
	Thermal string // "nominal", "fair", "serious" or "critical"
}

var thermalStates = [...]string{"nominal", "fair", "serious", "critical"}

// environment is the machine as it is now. It needs a pool.
func (m machine) environment() Host {
	process := m.send(m.class("NSProcessInfo"), "processInfo")
	h := Host{OS: m.goText(m.send(process, "operatingSystemVersionString"))}
	h.Chip, h.Model = m.hardware()
	if s := m.send(process, "thermalState"); int(s) < len(thermalStates) {
		h.Thermal = thermalStates[s]
	}
	return h
}

func (m machine) url(path string) id {
	return m.send(m.class("NSURL"), "fileURLWithPath:", m.text(path))
}

// numbers is an NSArray of NSNumbers.
func (m machine) numbers(list []int) id {
	array := m.send(m.class("NSMutableArray"), "array")
	for _, n := range list {
		m.send(array, "addObject:", m.send(m.class("NSNumber"), "numberWithLongLong:", id(n)))
	}
	return array
}

// ints is the contents of an NSArray of NSNumbers.
func (m machine) ints(array id) []int {
	list := []int{}
	for x := range m.each(array) {
		list = append(list, int(m.send(x, "longLongValue")))
	}
	return list
}

// each yields the objects of an NSArray.
func (m machine) each(array id) iter.Seq[id] {
	return func(yield func(id) bool) {
		for i := range m.send(array, "count") {
			if !yield(m.send(array, "objectAtIndex:", i)) {
				return
			}
		}
	}
}

// entries yields an NSDictionary whose keys are NSStrings.
func (m machine) entries(dictionary id) iter.Seq2[string, id] {
	return func(yield func(string, id) bool) {
		for key := range m.each(m.send(dictionary, "allKeys")) {
			if !yield(m.goText(key), m.send(dictionary, "objectForKey:", key)) {
				return
			}
		}
	}
}

// named is an NSDictionary.
func (m machine) named(list map[string]id) id {
	dictionary := m.send(m.class("NSMutableDictionary"), "dictionary")
	for name, x := range list {
		m.send(dictionary, "setObject:forKey:", x, m.text(name))
	}
	return dictionary
}
