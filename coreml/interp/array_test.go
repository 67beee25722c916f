package interp

import (
	"math/rand/v2"
	"slices"
	"testing"

	"anelab/coreml/mil"

	"github.com/stretchr/testify/require"
)

// someView is a random view of numbered elements: permuted, sliced, reversed, stretched.
func someView(r *rand.Rand) *array {
	shape := make([]int, 1+r.IntN(4))
	for i := range shape {
		shape[i] = 1 + r.IntN(4)
	}
	a := newArray(mil.Float32, shape...)
	for i := range a.floats {
		a.floats[i] = float32(i)
	}
	a = a.permute(r.Perm(len(shape)))
	axis := r.IntN(len(shape))
	switch r.IntN(4) {
	case 0:
		lo := r.IntN(a.shape[axis])
		a = a.narrow(axis, lo, 1+r.IntN(a.shape[axis]-lo))
	case 1:
		stride := slices.Clone(a.stride)
		offset := a.offset + (a.shape[axis]-1)*stride[axis]
		stride[axis] = -stride[axis]
		a = a.view(a.shape, stride, offset)
	case 2:
		a = a.broadcast(append([]int{1 + r.IntN(3)}, a.shape...))
	}
	return a
}

// elements reads a view one element at a time, by definition.
func elements(a *array) []float32 {
	out := make([]float32, 0, a.count())
	at := grid{shape: a.shape, blocks: a.shape}.at(0)
	for range a.count() {
		offset := a.offset
		for i, x := range at.index {
			offset += x * a.stride[i]
		}
		out = append(out, a.floats[offset])
		at.next()
	}
	return out
}

// factored is a shape of n elements.
func factored(r *rand.Rand, n int) []int {
	var shape []int
	for n > 1 {
		f := 1 + r.IntN(n)
		for n%f != 0 {
			f--
		}
		shape, n = append(shape, f), n/f
	}
	return append(shape, 1)
}

// invariant: views read as their definition says, however they are regrouped.
func TestViewsReadAsDefined(t *testing.T) {
	r, views := rand.New(rand.NewPCG(1, 2)), 0
	for range 3000 {
		a := someView(r)
		want := elements(a)
		require.Equal(t, want, a.flat(), "%v %v", a.shape, a.stride)
		shape := factored(r, a.count())
		b := a.reshape(shape...)
		require.Equal(t, want, elements(b), "%v %v as %v", a.shape, a.stride, shape)
		if &b.floats[0] == &a.floats[0] && !a.isContiguous() {
			views++
		}
	}
	require.Greater(t, views, 100, "some reshapes of scattered views need no copy")
}

// invariant: the parts of a walk are the walk.
func TestPartsOfAWalk(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		a := someView(r)
		b := newArray(mil.Float32, a.shape...)
		whole := newWalk(a.shape, a, b)
		var want, got [][2]int
		cut := r.IntN(whole.rows + 1)
		for _, part := range []walk{whole.part(0, cut), whole.part(cut, whole.rows)} {
			for part.next() {
				got = append(got, [2]int{part.at[0], part.at[1]})
			}
		}
		for whole.next() {
			want = append(want, [2]int{whole.at[0], whole.at[1]})
		}
		require.Equal(t, want, got)
	}
}

// hand: a buffer goes back when the last name that views it is dropped, not before.
func TestBuffersAreReturnedOnce(t *testing.T) {
	r := &running{Model: &Model{}, names: map[string]*value{}}
	a := r.blank(mil.Float16, pooledFrom)
	require.NotNil(t, a.buffer)
	for _, name := range []string{"x", "view"} {
		v := result(a.reshape(2, pooledFrom/2))
		v.hold()
		r.names[name] = v
	}
	r.drop("x")
	require.Equal(t, 1, a.buffer.users)
	r.drop("view")
	r.drop("view")
	require.Zero(t, a.buffer.users)
	require.Nil(t, r.blank(mil.Float16, pooledFrom-1).buffer, "small results are not worth it")
}
