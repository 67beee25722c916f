package atomicfile

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// only checks that the folder holds one file with that content.
func only(t *testing.T, path, content string) {
	t.Helper()
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, files, 1)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, content, string(got))
}

func TestOldContentStaysUntilCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	for _, end := range []string{"discard", "commit"} {
		f, err := Create(path)
		require.NoError(t, err)
		_, err = f.WriteString("new")
		require.NoError(t, err)
		if end == "discard" {
			f.Discard()
			only(t, path, "old")
			continue
		}
		require.NoError(t, f.Commit())
		only(t, path, "new")
	}
	if runtime.GOOS != "windows" {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o644), info.Mode().Perm())
	}
}

func TestFailedCommitLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	require.NoError(t, os.Mkdir(path, 0o700)) // a folder has the name
	f, err := Create(path)
	require.NoError(t, err)
	require.Error(t, f.Commit())
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
	_, err = Create(filepath.Join(dir, "missing", "x"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
