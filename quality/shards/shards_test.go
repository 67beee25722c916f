package shards

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/checkpoint"
	"anelab/internal/shareddata"
	"anelab/quality"
)

// job is the embedded tiny checkpoint over a made-up text, and its units.
func job(t testing.TB) (Job, []quality.Unit) {
	t.Helper()
	path := filepath.Join(shareddata.ModuleRoot(t), "testdata", "golden", "tiny-e2b", "bf16")
	c, err := checkpoint.Open(path)
	require.NoError(t, err)
	defer c.Close()
	sum, err := quality.Fingerprint(c.Config, c)
	require.NoError(t, err)
	var tokens []int
	for i := range 7 * 13 {
		tokens = append(tokens, (i*i*7+3*i)%300)
	}
	set, err := quality.NewTextSet([]int{2}, tokens, 14)
	require.NoError(t, err)
	j := Job{Checkpoint: path, Folder: t.TempDir(), Threads: 1}
	j.Set, err = WriteSet(j.Folder, set)
	require.NoError(t, err)
	u := quality.Unit{Checkpoint: sum, Set: set.Sum, Count: len(set.Sequences), Tasks: []quality.Task{quality.PPL, quality.Agreement}, Mode: "ane"}
	return j, u.Parts(2)
}

func open(t testing.TB, j Job) *Worker {
	w, err := Open(j)
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	return w
}

// contents are the shards of a folder by name.
func contents(t testing.TB, folder string, units []quality.Unit) (all []string) {
	for _, u := range units {
		text, err := os.ReadFile(filepath.Join(folder, u.File()))
		require.NoError(t, err)
		all = append(all, string(text))
	}
	return all
}

// invariant: one worker in order, and two workers side by side that do some units twice, leave the same bytes.
func TestFoldersEndAlike(t *testing.T) {
	one, units := job(t)
	require.Greater(t, len(units), 3)
	w := open(t, one)
	for _, u := range units {
		require.NoError(t, w.Do(context.Background(), u))
	}
	two, _ := job(t)
	var both sync.WaitGroup
	for k, w := range []*Worker{open(t, two), open(t, two)} {
		both.Add(1)
		go func() {
			defer both.Done()
			for i := range units {
				if err := w.Do(context.Background(), units[(i+k*len(units)/2)%len(units)]); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	both.Wait()
	require.Equal(t, contents(t, one.Folder, units), contents(t, two.Folder, units))
	left, err := filepath.Glob(filepath.Join(two.Folder, "*.tmp-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// invariant: what is there is not made again, and what is missing is known by name.
func TestOnlyMissingUnitsAreMeasured(t *testing.T) {
	j, units := job(t)
	w := open(t, j)
	missing, err := Missing(j.Folder, units)
	require.NoError(t, err)
	require.Equal(t, units, missing)
	require.NoError(t, w.Do(context.Background(), units[1]))
	path := filepath.Join(j.Folder, units[1].File())
	before, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, w.Do(context.Background(), units[1]))
	after, err := os.Stat(path)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after), "a shard is not written twice")
	missing, err = Missing(j.Folder, units)
	require.NoError(t, err)
	require.Equal(t, append(append([]quality.Unit{}, units[:1]...), units[2:]...), missing)

	sums, done, err := Read(j.Folder, units[1])
	require.NoError(t, err)
	require.True(t, done)
	require.Equal(t, units[1].Count, sums.Sequences)
}

// hand: what a worker refuses.
func TestShardsRefuse(t *testing.T) {
	j, units := job(t)
	w := open(t, j)
	require.NoError(t, w.Do(context.Background(), units[0]))
	text, err := os.ReadFile(filepath.Join(j.Folder, units[0].File()))
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(filepath.Join(j.Folder, units[1].File()), text, 0o644)) // another unit's content
	_, _, err = Read(j.Folder, units[1])
	require.ErrorContains(t, err, "delete the file; it is computed again")
	require.Error(t, w.Do(context.Background(), units[1]))
	require.NoError(t, os.WriteFile(filepath.Join(j.Folder, units[2].File()), text[:40], 0o644))
	_, err = Missing(j.Folder, units)
	require.ErrorContains(t, err, "delete the file")

	for _, change := range []func(*Job){func(j *Job) { j.Set = "nowhere" }, func(j *Job) { j.Checkpoint = "nowhere" }} {
		other := j
		change(&other)
		_, err := Open(other)
		require.ErrorContains(t, err, "nowhere")
	}
	stranger := units[3]
	stranger.Checkpoint = "0"
	require.ErrorContains(t, w.Do(context.Background(), stranger), "give the checkpoint that the unit was made for")
	require.ErrorContains(t, WriteFile(filepath.Join(j.Folder, "no", "where"), nil), "where")
}

// fuzz: no text makes the reader panic, and what it takes has tokens and questions in place.
func FuzzParseSet(f *testing.F) {
	f.Add([]byte(`{"Sequences": [{"Tokens": [2, 3], "Questions": [{"At": 1, "Value": 0, "Answer": 3, "Distance": 1}], "Topics": null}], "ScoreFrom": 0, "Sum": "x"}`))
	f.Add([]byte(`{"Sequences": [{"Tokens": []}]}`))
	f.Add([]byte(`{"Sequences": [{"Tokens": [-1]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parseSet("x", text)
		if err != nil {
			return
		}
		for _, q := range s.Sequences {
			require.NotEmpty(t, q.Tokens)
			for _, x := range q.Questions {
				require.Less(t, x.At, len(q.Tokens))
			}
		}
	})
}
