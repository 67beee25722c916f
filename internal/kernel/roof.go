package kernel

import (
	"encoding/binary"
	"time"
)

// ReadRate is the rate in bytes per second at which the pool's threads read memory that no cache holds, the best of several
// passes: the roof of everything that streams weights.
func (p *Pool) ReadRate(memory []byte, passes int) float64 {
	job := &readJob{memory: memory}
	best := 0.0
	for range passes {
		start := time.Now()
		p.Do(len(memory)/readBlock, 1, job)
		best = max(best, float64(len(memory)/readBlock*readBlock)/time.Since(start).Seconds())
	}
	return best
}

// readBlock is what a thread reads at a time, in four streams.
const readBlock = 4 << 20

type readJob struct {
	memory []byte
	sums   [64]uint64
}

func (j *readJob) Run(lo, hi int) {
	for i := lo; i < hi; i++ {
		b := j.memory[i*readBlock : (i+1)*readBlock]
		sum, ok := sumStreamsFast(b)
		if !ok {
			for k := 0; k < len(b); k += 8 {
				sum += binary.LittleEndian.Uint64(b[k:])
			}
		}
		j.sums[i%len(j.sums)] = sum
	}
}
