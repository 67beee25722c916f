package mapped

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestFoldersGiveTheSameBytes(t *testing.T) { // invariant
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.bin"), []byte("13 bytes here"), 0o600))
	for name, folder := range map[string]Folder{
		"disk":     Disk(dir),
		"embedded": In(fstest.MapFS{"x/y/a.bin": {Data: []byte("13 bytes here")}}, "x/y"),
	} {
		t.Run(name, func(t *testing.T) {
			require.True(t, folder.Has("a.bin"))
			require.False(t, folder.Has("b.bin"))
			f, err := folder.Open("a.bin")
			require.NoError(t, err)
			require.Equal(t, "13 bytes here", string(f.Data))
			require.NoError(t, f.Close())
			require.Nil(t, f.Data)
			require.NoError(t, f.Close(), "closing twice is harmless")
			_, err = folder.Open("b.bin")
			require.ErrorIs(t, err, fs.ErrNotExist)
			require.ErrorContains(t, err, "b.bin")
		})
	}
}

func TestOpenOfOddFiles(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	f, err := Open(empty)
	require.NoError(t, err)
	require.Empty(t, f.Data)
	require.NoError(t, f.Close())
	_, err = Open(dir)
	require.ErrorContains(t, err, "not a regular file")
}
