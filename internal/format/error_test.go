package format

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestErrorText(t *testing.T) {
	for _, c := range []struct {
		name string
		err  Error
		want string
	}{
		{"all", Error{Path: "m.safetensors", Field: "norm.weight", Got: "shape [3]", Want: "[4]", Fix: "re-export"},
			"m.safetensors: norm.weight: shape [3], want [4]; re-export"},
		{"cause", Error{Path: "x", Err: io.ErrUnexpectedEOF}, "x: unexpected EOF"},
		{"got and cause", Error{Path: "x", Got: "3 bytes", Err: io.ErrUnexpectedEOF}, "x: 3 bytes: unexpected EOF"},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, c.err.Error()) })
	}
	require.True(t, errors.Is(&Error{Err: io.EOF}, io.EOF))
}

func TestClosest(t *testing.T) { // hand
	require.Equal(t, "weights", Closest("wieghts", []string{"layers", "weights", "kv"}))
	require.Equal(t, "", Closest("zzz", []string{"layers", "weights"}))
	require.Equal(t, "did you mean \"@3way\"?", DidYouMean("@3wya", []string{"@2way", "@3way"}))
	require.Equal(t, "known: a1, b2", DidYouMean("qqqq", []string{"a1", "b2"}))
}
