//go:build unix

package mapped

import (
	"os"
	"syscall"
)

func mapFile(f *os.File, size int) (data []byte, done func() error, err error) {
	if size == 0 { // the kernel refuses empty mappings
		return nil, func() error { return nil }, nil
	}
	data, err = syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	return data, func() error { return syscall.Munmap(data) }, nil
}
