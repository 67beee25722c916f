package device

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// fake is an Objective-C runtime with the part of Foundation and Core ML that this package uses (fake_coreml_test.go). It counts
// references and knows the pools of threads, and notes what would leak, crash or throw on a Mac.
type fake struct {
	t       testing.TB
	mu      sync.Mutex
	objects map[id]*object
	next    id
	pools   map[int][][]id // by thread
	lent    map[uintptr][]byte
	wrong   []string // what would have gone wrong
	sent    []string // selectors, in order

	absent   map[string]bool   // classes and selectors that this system does not have
	failing  map[string]string // selector → text of its NSError
	hold     chan struct{}     // if not nil, predictions wait for it
	started  chan struct{}     // if not nil, told of every prediction that begins
	padding  int               // arrays have rows of a multiple of this many elements
	ignoring bool              // output backings are not used
	running  map[id]int        // predictions under way, by model and by state
}

// object is an instance, or a class if only its name is set.
type object struct {
	class string
	refs  int
	holds []id // released with it
	value any
}

func newFake(t testing.TB) (*fake, machine) {
	f := &fake{t: t, objects: map[id]*object{}, next: 0x1000, pools: map[int][][]id{}, lent: map[uintptr][]byte{}, absent: map[string]bool{},
		failing: map[string]string{}, running: map[id]int{}}
	return f, machine{f}
}

// balanced says that everything was given back, that nothing would have crashed, and that pools are empty.
func (f *fake) balanced(t testing.TB) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var live []string
	for _, o := range f.objects {
		if o.refs > 0 {
			live = append(live, o.class)
		}
	}
	slices.Sort(live)
	require.Empty(t, live, "never released")
	require.Empty(t, f.wrong)
	require.Empty(t, f.lent, "memory used outside its block")
	for thread, pools := range f.pools {
		require.Empty(t, pools, "thread %d", thread)
	}
}

func (f *fake) note(format string, args ...any) {
	f.wrong = append(f.wrong, fmt.Sprintf(format, args...))
}

// make is a new object with one reference.
func (f *fake) make(class string, value any, holds ...id) id {
	for _, x := range holds {
		f.retain(x)
	}
	f.next += 16
	f.objects[f.next] = &object{class: class, refs: 1, holds: holds, value: value}
	return f.next
}

// borrow is a new object that belongs to the pool of this thread.
func (f *fake) borrow(class string, value any, holds ...id) id {
	return f.autorelease(f.make(class, value, holds...))
}

func (f *fake) autorelease(x id) id {
	thread := threadID()
	pools := f.pools[thread]
	if len(pools) == 0 {
		f.note("%s autoreleased without a pool", f.objects[x].class)
		return x
	}
	pools[len(pools)-1] = append(pools[len(pools)-1], x)
	return x
}

func (f *fake) retain(x id) {
	if o := f.objects[x]; o != nil && o.refs > 0 {
		o.refs++
	}
}

func (f *fake) drop(x id) {
	o := f.objects[x]
	if o == nil || o.refs == 0 {
		return
	}
	if o.refs--; o.refs == 0 {
		o.class, o.value = "dead "+o.class, nil
		for _, held := range o.holds {
			f.drop(held)
		}
		o.refs = -1
	}
}

func (f *fake) class(name string) id {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.absent[name] {
		return 0
	}
	for x, o := range f.objects {
		if o.class == name && o.refs == 0 {
			return x
		}
	}
	f.next += 16
	f.objects[f.next] = &object{class: name}
	return f.next
}

func (f *fake) responds(to id, selector string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.method(f.objects[to], selector) != nil && !f.absent[selector]
}

// method finds the implementation of a message: "Class selector" or, of a class, "+Class selector".
func (f *fake) method(o *object, selector string) method {
	if o == nil {
		return nil
	}
	kind := o.class
	if o.refs == 0 {
		kind = "+" + kind
	}
	if m := methods[kind+" "+selector]; m != nil {
		return m
	}
	return methods["any "+selector]
}

func (f *fake) send(to id, selector string, args ...id) id {
	result, fault := f.sendFault(to, selector, args...)
	if fault != 0 {
		f.note("%s failed without anybody to tell", selector)
	}
	return result
}

func (f *fake) sendFault(to id, selector string, args ...id) (result, fault id) {
	if to == 0 {
		return 0, 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent = append(f.sent, selector)
	o := f.objects[to]
	if o == nil || o.refs < 0 {
		f.note("%s sent to a dead object", selector)
		return 0, 0
	}
	if text, ok := f.failing[selector]; ok {
		if strings.HasPrefix(selector, "init") {
			f.drop(to) // an initializer that fails gives its object back
		}
		return 0, f.fault(text)
	}
	m := f.method(o, selector)
	if m == nil || f.absent[selector] {
		f.note("unrecognized selector %s sent to %s", selector, o.class)
		return 0, 0
	}
	return m(f, to, o, args)
}

func (f *fake) fault(text string) id {
	under := f.borrow("NSError", failure{text: "underneath " + text})
	return f.borrow("NSError", failure{text: text, under: under}, under)
}

func (f *fake) sendFloat(to id, selector string, args ...id) float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Equal(f.t, "weight", selector)
	return f.objects[to].value.(float64)
}

func (f *fake) push() uintptr {
	f.mu.Lock()
	defer f.mu.Unlock()
	thread := threadID()
	f.pools[thread] = append(f.pools[thread], nil)
	return uintptr(thread)<<16 | uintptr(len(f.pools[thread]))
}

func (f *fake) pop(pool uintptr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	thread := threadID()
	depth := len(f.pools[thread])
	if pool != uintptr(thread)<<16|uintptr(depth) {
		f.note("a pool popped on another thread, or out of order")
		return
	}
	for _, x := range f.pools[thread][depth-1] {
		f.drop(x)
	}
	f.pools[thread] = f.pools[thread][:depth-1]
}

func (f *fake) text(s string) id {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.borrow("NSString", s)
}

func (f *fake) goText(s id) string {
	if s == 0 {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.objects[s].value.(string)
}

func (f *fake) block(arity int, run func(args []uintptr)) id {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.make("Block", func(args ...uintptr) {
		require.Len(f.t, args, arity, "a block is called with other words than it was made for")
		f.mu.Unlock() // blocks send messages
		defer f.mu.Lock()
		run(args)
	})
}

func (f *fake) memory(address uintptr, bytes int) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.lent[address]
	if m == nil || bytes > len(m) {
		f.note("memory read outside its block, or beyond its end")
		return make([]byte, bytes)
	}
	return m[:bytes]
}

func (f *fake) pixelBuffer(width, height int) (id, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.absent["CVPixelBufferCreate"] {
		return 0, -6661
	}
	return f.make("CVPixelBuffer", [2]int{width, height}), 0
}

func (f *fake) hardware() (chip, model string) { return "Fake M1", "Fake1,1" }

// failure is the contents of an NSError.
type failure struct {
	text  string
	under id
}

// method is the implementation of a message; the lock is held.
type method func(f *fake, self id, o *object, args []id) (result, fault id)

// answer is a method that cannot fail.
func answering(m func(f *fake, self id, o *object, args []id) id) method {
	return func(f *fake, self id, o *object, args []id) (id, id) { return m(f, self, o, args), 0 }
}

// methods is every message that the fake understands; another one would throw.
var methods = map[string]method{}

func init() {
	for name, m := range map[string]func(f *fake, self id, o *object, args []id) id{
		"any retain":  func(f *fake, self id, _ *object, _ []id) id { f.retain(self); return self },
		"any release": func(f *fake, self id, _ *object, _ []id) id { f.drop(self); return 0 },
		"any init":    func(_ *fake, self id, _ *object, _ []id) id { return self },
		"any alloc":   func(f *fake, _ id, o *object, _ []id) id { return f.make(o.class, nil) },
		"any isKindOfClass:": func(f *fake, _ id, o *object, args []id) id {
			if c := f.objects[args[0]]; c != nil && c.class == o.class {
				return 0xff01 // only the low byte of a BOOL is defined
			}
			return 0xff00
		},

		"NSString self":                 func(_ *fake, self id, _ *object, _ []id) id { return self },
		"+NSURL fileURLWithPath:":       func(f *fake, _ id, _ *object, args []id) id { return f.borrow("NSURL", f.objects[args[0]].value) },
		"NSURL path":                    func(f *fake, _ id, o *object, _ []id) id { return f.borrow("NSString", o.value) },
		"+NSNumber numberWithLongLong:": func(f *fake, _ id, _ *object, args []id) id { return f.borrow("NSNumber", args[0]) },
		"NSNumber longLongValue":        func(_ *fake, _ id, o *object, _ []id) id { return o.value.(id) },

		"+NSMutableArray array": func(f *fake, _ id, _ *object, _ []id) id { return f.borrow("NSMutableArray", nil) },
		"NSMutableArray addObject:": func(f *fake, _ id, o *object, args []id) id {
			f.retain(args[0])
			o.holds = append(o.holds, args[0])
			return 0
		},
		"NSMutableArray count":          func(_ *fake, _ id, o *object, _ []id) id { return id(len(o.holds)) },
		"NSMutableArray objectAtIndex:": func(_ *fake, _ id, o *object, args []id) id { return o.holds[args[0]] },

		"+NSMutableDictionary dictionary": func(f *fake, _ id, _ *object, _ []id) id { return f.borrow("NSMutableDictionary", map[string]id{}) },
		"NSMutableDictionary setObject:forKey:": func(f *fake, _ id, o *object, args []id) id {
			f.retain(args[0])
			o.holds = append(o.holds, args[0])
			o.value.(map[string]id)[f.objects[args[1]].value.(string)] = args[0]
			return 0
		},
		"NSMutableDictionary objectForKey:": func(f *fake, _ id, o *object, args []id) id {
			return o.value.(map[string]id)[f.objects[args[0]].value.(string)]
		},
		"NSMutableDictionary allKeys": func(f *fake, _ id, o *object, _ []id) id {
			var keys []id
			for k := range o.value.(map[string]id) {
				keys = append(keys, f.borrow("NSString", k))
			}
			return f.borrow("NSMutableArray", nil, keys...)
		},

		"NSError domain":               func(f *fake, _ id, _ *object, _ []id) id { return f.borrow("NSString", "com.apple.CoreML") },
		"NSError code":                 func(_ *fake, _ id, _ *object, _ []id) id { return ^id(13) }, // −14
		"NSError localizedDescription": func(f *fake, _ id, o *object, _ []id) id { return f.borrow("NSString", o.value.(failure).text) },
		"NSError userInfo": func(f *fake, _ id, o *object, _ []id) id {
			return f.borrow("NSMutableDictionary", map[string]id{"NSUnderlyingError": o.value.(failure).under})
		},
		"+NSProcessInfo processInfo":                 func(f *fake, _ id, _ *object, _ []id) id { return f.borrow("NSProcessInfo", nil) },
		"NSProcessInfo operatingSystemVersionString": func(f *fake, _ id, _ *object, _ []id) id { return f.borrow("NSString", "Version 0 (Fake)") },
		"NSProcessInfo thermalState":                 func(_ *fake, _ id, _ *object, _ []id) id { return 0 },
	} {
		methods[name] = answering(m)
	}
}

// numbers is an array of NSNumbers.
func (f *fake) numbers(list []int) id {
	var all []id
	for _, n := range list {
		all = append(all, f.borrow("NSNumber", id(n)))
	}
	return f.borrow("NSMutableArray", nil, all...)
}

func (f *fake) ints(array id) []int {
	var list []int
	for _, x := range f.objects[array].holds {
		list = append(list, int(f.objects[x].value.(id)))
	}
	return list
}

// tempModel is a folder that stands for a compiled model.
func (f *fake) tempModel(source string) string {
	dir, err := os.MkdirTemp(f.t.TempDir(), "*.mlmodelc")
	require.NoError(f.t, err)
	require.NoError(f.t, os.WriteFile(dir+"/source", []byte(source), 0o600))
	return dir
}
