package view

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// hand: 0.4 + 0.4 + 0.4 µs are 0, 1 and 0, because the total is 1
func TestMicrosecondsAddUp(t *testing.T) {
	var s microsecondSum
	require.Equal(t, []string{"0.000", "0.001", "0.000"}, []string{s.add(0.4e-6), s.add(0.4e-6), s.add(0.4e-6)})
	require.Equal(t, "0.001", s.total())
	require.Equal(t, "12.345", s.add(12.345e-3))
	require.Equal(t, "12.346", s.total())
}
