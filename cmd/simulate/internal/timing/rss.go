package timing

import (
	"os"
	"strconv"
	"strings"
)

// PeakRSS is the most memory the process has held, in bytes; 0 where the system does not say.
func PeakRSS() int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return n << 10
		}
	}
	return 0
}

// MemoryBytes is the memory of the machine; 0 where the system does not say.
func MemoryBytes() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	for i, f := range fields {
		if f == "MemTotal:" && i+1 < len(fields) {
			n, _ := strconv.ParseInt(fields[i+1], 10, 64)
			return n << 10
		}
	}
	return 0
}
