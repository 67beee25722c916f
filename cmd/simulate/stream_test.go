package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// hand: a record that was cut off anywhere goes on, another file does not: its only line has no end and would be cut away.
func TestResumeLeavesOtherFilesAlone(t *testing.T) {
	for _, c := range []struct {
		text string
		ours bool
	}{
		{"", true}, {`{"format_v`, true}, {`{"format_version":"1.0","model"`, true},
		{"a thesis of one line", false}, {"{\n  \"format_version\": \"1.0\"", false}, {"\x7fELF\x02\x01", false},
	} {
		path := filepath.Join(t.TempDir(), "records.jsonl")
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o644))
		require.Equal(t, c.ours, beginsWithRecord(path) == nil, "%q", c.text)
	}
	require.NoError(t, beginsWithRecord(filepath.Join(t.TempDir(), "new.jsonl")))
}
