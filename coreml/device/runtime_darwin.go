//go:build darwin && coreml

package device

import (
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/ebitengine/purego/objc"

	"anelab/internal/format"
)

// The frameworks that are opened. They lie in the system's shared cache, so only the loader sees files of these names. Nothing is
// linked against them: a class is 0 until its framework is open, and messages to 0 quietly answer 0.
var frameworks = []string{"Foundation", "CoreVideo", "CoreML"}

// apple sends messages to the Objective-C runtime.
type apple struct {
	msgSend      uintptr
	sendDouble   func(to, selector uintptr) float64
	poolPush     func() uintptr
	poolPop      func(pool uintptr)
	createPixels uintptr
	surfaceKey   id // kCVPixelBufferIOSurfacePropertiesKey

	mu        sync.RWMutex
	selectors map[string]objc.SEL // registering takes the global lock of the runtime
}

var system = sync.OnceValues(func() (messages, error) {
	a, err := openFrameworks()
	if err != nil {
		return nil, &format.Error{Field: "Core ML", Err: fmt.Errorf("%w: %w", ErrUnavailable, err), Fix: "it comes with macOS 13 and later"}
	}
	return a, nil
})

// openFrameworks opens the frameworks and finds the functions that are called beside messages.
func openFrameworks() (*apple, error) {
	a := &apple{selectors: map[string]objc.SEL{}}
	handles := map[string]uintptr{}
	for _, name := range frameworks {
		h, err := purego.Dlopen("/System/Library/Frameworks/"+name+".framework/"+name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err != nil {
			return nil, err
		}
		handles[name] = h
	}
	library, err := purego.Dlopen("/usr/lib/libobjc.A.dylib", purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, err
	}
	if a.msgSend, err = purego.Dlsym(library, "objc_msgSend"); err != nil {
		return nil, err
	}
	purego.RegisterFunc(&a.sendDouble, a.msgSend)
	purego.RegisterLibFunc(&a.poolPush, library, "objc_autoreleasePoolPush")
	purego.RegisterLibFunc(&a.poolPop, library, "objc_autoreleasePoolPop")
	if a.createPixels, err = purego.Dlsym(handles["CoreVideo"], "CVPixelBufferCreate"); err != nil {
		return nil, err
	}
	key, err := purego.Dlsym(handles["CoreVideo"], "kCVPixelBufferIOSurfacePropertiesKey")
	if err != nil {
		return nil, err
	}
	a.surfaceKey = *(*id)(pointer(key))
	return a, nil
}

// pointer is an address that C gave us. Going through memory keeps vet from taking it for arithmetic on Go pointers.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

func (a *apple) selector(name string) uintptr {
	a.mu.RLock()
	s, ok := a.selectors[name]
	a.mu.RUnlock()
	if !ok {
		s = objc.RegisterName(name)
		a.mu.Lock()
		a.selectors[name] = s
		a.mu.Unlock()
	}
	return uintptr(s)
}

func (a *apple) class(name string) id { return id(objc.GetClass(name)) }

// responds reads a BOOL, of which only the low byte is defined.
func (a *apple) responds(to id, selector string) bool {
	return a.send(to, "respondsToSelector:", id(a.selector(selector)))&0xff != 0
}

// send calls objc_msgSend with words only. objc.Send would look at the types of its arguments by reflection each time.
func (a *apple) send(to id, selector string, args ...id) id {
	var words [8]uintptr
	words[0], words[1] = uintptr(to), a.selector(selector)
	for i, x := range args {
		words[i+2] = uintptr(x)
	}
	result, _, _ := purego.SyscallN(a.msgSend, words[:2+len(args)]...)
	return id(result)
}

// sendFault lends the runtime a word on the heap for the error: a stack may move while a callback runs.
func (a *apple) sendFault(to id, selector string, args ...id) (result, fault id) {
	cell := new(id)
	var pin runtime.Pinner
	pin.Pin(cell)
	defer pin.Unpin()
	result = a.send(to, selector, append(args[:len(args):len(args)], id(uintptr(unsafe.Pointer(cell))))...)
	return result, *cell
}

func (a *apple) sendFloat(to id, selector string, args ...id) float64 {
	if len(args) > 0 {
		panic("device: methods that return doubles take no arguments here")
	}
	return a.sendDouble(uintptr(to), a.selector(selector))
}

func (a *apple) push() uintptr    { return a.poolPush() }
func (a *apple) pop(pool uintptr) { a.poolPop(pool) }

// text makes an NSString. A zero byte would end it early; no name has one.
func (a *apple) text(s string) id {
	buffer := append([]byte(s), 0)
	var pin runtime.Pinner
	pin.Pin(&buffer[0])
	defer pin.Unpin()
	return a.send(a.class("NSString"), "stringWithUTF8String:", id(uintptr(unsafe.Pointer(&buffer[0]))))
}

func (a *apple) goText(s id) string {
	if s == 0 {
		return ""
	}
	const utf8 = 4 // NSUTF8StringEncoding
	n := int(a.send(s, "lengthOfBytesUsingEncoding:", utf8))
	if n == 0 {
		return ""
	}
	return string(a.memory(uintptr(a.send(s, "UTF8String")), n))
}

// block makes an Objective-C block of so many words. purego keeps one C callback for each of these types, not for each block.
func (a *apple) block(arity int, f func(args []uintptr)) id {
	switch arity {
	case 1:
		return id(objc.NewBlock(func(_ objc.Block, x objc.ID) { f([]uintptr{uintptr(x)}) }))
	case 2:
		return id(objc.NewBlock(func(_ objc.Block, x, y objc.ID) { f([]uintptr{uintptr(x), uintptr(y)}) }))
	case 3:
		return id(objc.NewBlock(func(_ objc.Block, x, y, z objc.ID) { f([]uintptr{uintptr(x), uintptr(y), uintptr(z)}) }))
	}
	panic("device: no block of this many words")
}

func (a *apple) memory(address uintptr, bytes int) []byte {
	return unsafe.Slice((*byte)(pointer(address)), bytes)
}

// halfPixels is kCVPixelFormatType_OneComponent16Half, 'L00h': the only format that an MLMultiArray takes.
const halfPixels = 0x4C303068

func (a *apple) pixelBuffer(width, height int) (buffer id, status int) {
	empty := a.send(a.class("NSDictionary"), "dictionary")
	attributes := a.send(a.class("NSDictionary"), "dictionaryWithObject:forKey:", empty, a.surfaceKey)
	cell := new(id)
	var pin runtime.Pinner
	pin.Pin(cell)
	defer pin.Unpin()
	code, _, _ := purego.SyscallN(a.createPixels, 0, uintptr(width), uintptr(height), halfPixels, uintptr(attributes), uintptr(unsafe.Pointer(cell)))
	return *cell, int(int32(code))
}

func (a *apple) hardware() (chip, model string) {
	chip, _ = syscall.Sysctl("machdep.cpu.brand_string")
	model, _ = syscall.Sysctl("hw.model")
	return chip, model
}
