package swa

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// readAll reads everything that a store holds, keys and values, as the query behind it does.
func readAll(s Store, shape Shape) []float32 {
	var all []float32
	h := s.Held()
	for _, v := range []View{s.Keys(), s.Values()} {
		for g := range shape.KVHeads {
			rows := make([]float32, h.Len()*shape.HeadDim)
			v.At(s.Next()-1).Head(g).Load(rows, h.Lo, h.Len())
			all = append(all, rows...)
		}
	}
	return all
}

// invariant: a store restored in the middle goes on as if nothing had happened in between, whatever it keeps and however long
// it was left to itself.
func TestSaveAndRestore(t *testing.T) {
	const context = 29
	for _, c := range []struct {
		name  string
		shape Shape
		keep  Retention
		index int
	}{
		{"linear", Shape{KVHeads: 2, HeadDim: 3}, All, 0},
		{"linear in fp16", Shape{KVHeads: 1, HeadDim: 5, Elem: Float16}, All, 0},
		{"ring", Shape{KVHeads: 2, HeadDim: 3, Elem: BFloat16}, Last(7), 0},
		{"sinks", Shape{KVHeads: 1, HeadDim: 3}, Sinks(2, 5), 0},
		{"bytes", Shape{KVHeads: 2, HeadDim: 4, Form: Form{Bytes: true}}, All, 0},
		{"bytes in a ring", Shape{KVHeads: 2, HeadDim: 4, Form: Form{Bytes: true}}, Last(6), 0},
		{"groups", Shape{KVHeads: 2, HeadDim: 4, Form: Form{Bits: 2, Group: 4, Recent: 3}}, All, 0},
		{"index", Shape{KVHeads: 1, HeadDim: 3}, All, 4},
	} {
		for _, at := range []int{1, 6, 11, 18} {
			t.Run(fmt.Sprintf("%s at %d", c.name, at), func(t *testing.T) {
				make1 := func() Store {
					s := New(c.keep, c.shape, context)
					if c.index > 0 {
						s = NewIndexed(s, c.shape, c.index, context)
					}
					return s
				}
				s, fresh := make1(), make1()
				rng := rand.New(rand.NewPCG(1, 2))
				feed := func(s Store, n int, rng *rand.Rand) {
					for range n {
						k, v := make([]float32, c.shape.Width()), make([]float32, c.shape.Width())
						for i := range k {
							k[i], v[i] = rng.Float32()-0.5, rng.Float32()-0.5
						}
						s.Stage(s.Next(), k, v)
						s.Commit()
					}
				}
				feed(s, at, rng)
				saved, want := Save(s), readAll(s, c.shape)
				require.Positive(t, saved.Bytes())

				feed(s, 9, rand.New(rand.NewPCG(3, 4))) // goes elsewhere
				s.Stage(s.Next(), make([]float32, c.shape.Width()), make([]float32, c.shape.Width()))
				for _, dst := range []Store{s, fresh} {
					saved.Restore(dst)
					require.Equal(t, at, dst.Next())
					require.Equal(t, want, readAll(dst, c.shape))
					feed(dst, 8, rand.New(rand.NewPCG(5, 6)))
				}
				require.Equal(t, readAll(s, c.shape), readAll(fresh, c.shape))
				require.Equal(t, s.Held(), fresh.Held())
			})
		}
	}
}

// invariant: a store of another kind is our own mistake.
func TestRestoreIntoAnother(t *testing.T) {
	s := NewRing(Shape{KVHeads: 1, HeadDim: 2}, 3)
	require.PanicsWithValue(t, "swa: a store restored from one of another kind", func() { Save(s).Restore(NewRing(Shape{KVHeads: 1, HeadDim: 2}, 5)) })
}
