package device

import "syscall"

// threadID tells the fake whose pool it is.
func threadID() int { return syscall.Gettid() }

const threadsKnown = true
