//go:build !(darwin && coreml)

package device

import (
	"runtime"

	"anelab/internal/format"
)

// system says why there is no runtime, and what to do about it.
func system() (messages, error) {
	fix := "copy the package to a Mac and run scripts/device_validate.sh there; the interpreter (coreml/interp) runs it here"
	if runtime.GOOS == "darwin" {
		fix = "build with -tags coreml"
	}
	return nil, &format.Error{Field: "Core ML", Got: runtime.GOOS + "/" + runtime.GOARCH + " without tag coreml", Want: "macOS and the build tag coreml", Err: ErrUnavailable, Fix: fix}
}
