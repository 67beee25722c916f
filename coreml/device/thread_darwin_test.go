package device

import "syscall"

// threadID tells the fake whose pool it is.
func threadID() int {
	thread, _, _ := syscall.RawSyscall(syscall.SYS_THREAD_SELFID, 0, 0, 0)
	return int(thread)
}

const threadsKnown = true
