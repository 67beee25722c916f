package formula

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"runtime"
	"slices"
	"sync"

	"anelab/internal/format"
	"anelab/internal/half"
	"anelab/quant"
)

// Weights is a model whose tensors are computed when asked for, and not kept.
type Weights struct {
	name   string
	seed   string
	shapes map[string][]int
}

// New describes a model by its seed and the shape of every tensor, under names without prefix. It refuses a tensor the
// formula has no scale for. name is for errors.
func New(name, seed string, shapes map[string][]int) (*Weights, error) {
	w := &Weights{name: name, seed: seed, shapes: shapes}
	for _, tensor := range w.Names() {
		if _, ok := scaleOf(tensor, shapes[tensor]); !ok {
			return nil, &format.Error{Path: w.Path(), Field: tensor, Got: fmt.Sprintf("shape %v", shapes[tensor]), Want: "a tensor of a dense Gemma 4 text model"}
		}
	}
	return w, nil
}

// Path is "formula:" and the name.
func (w *Weights) Path() string { return "formula:" + w.name }

// Names lists the tensors, sorted.
func (w *Weights) Names() []string { return slices.Sorted(maps.Keys(w.shapes)) }

// Has reports whether the model has a tensor of that name.
func (w *Weights) Has(name string) bool {
	_, ok := w.shapes[name]
	return ok
}

// Describe returns the named tensor without its bytes.
func (w *Weights) Describe(name string) (quant.Tensor, error) {
	shape, ok := w.shapes[name]
	if !ok {
		return quant.Tensor{}, &format.Error{Path: w.Path(), Field: name, Got: "no such tensor"}
	}
	return quant.Tensor{Name: name, DType: quant.BF16, Shape: shape}, nil
}

// Tensor computes the named tensor, on all processors if it is large.
func (w *Weights) Tensor(name string) (quant.Tensor, error) {
	t, err := w.Describe(name)
	if err != nil {
		return t, err
	}
	s, _ := scaleOf(name, t.Shape)
	t.Data = make([]byte, 2*t.Len())
	generate(t.Data, state(w.seed, name), s)
	return t, nil
}

// Close does nothing.
func (w *Weights) Close() error { return nil }

// state is the splitmix64 state that stands for a tensor.
func state(seed, name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(seed + ":" + name))
	return h.Sum64()
}

// block is how many weights one goroutine takes at a time; smaller tensors are not worth a second one.
const block = 1 << 17

// generate fills dst with the weights 0, 1, … of a tensor.
func generate(dst []byte, h uint64, s scale) {
	n := len(dst) / 2
	if n <= block {
		fill(dst, h, s)
		return
	}
	starts := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for lo := range starts {
				fill(dst[2*lo:2*min(lo+block, n)], h+uint64(lo)*golden, s)
			}
		})
	}
	for lo := 0; lo < n; lo += block {
		starts <- lo
	}
	close(starts)
	wg.Wait()
}

// golden is the step of splitmix64, 2^64 divided by the golden ratio.
const golden = 0x9e3779b97f4a7c15

// fill computes the weights that follow state h. The sum is exact in float64, so a fused multiply-add cannot change it.
func fill(dst []byte, h uint64, s scale) {
	unit := s.a / (1 << 24)
	for ; len(dst) >= 2; dst = dst[2:] {
		h += golden
		z := (h ^ h>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		z ^= z >> 31
		n := 2*int64(z>>40) + 1 - 1<<24
		binary.LittleEndian.PutUint16(dst, half.F32ToBF16(float32(s.c+float64(unit*float64(n)))))
	}
}
