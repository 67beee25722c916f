package trial

import (
	"os"
	"path/filepath"

	"anelab/quality"
	"anelab/quality/shards"
)

// Job puts what workers need into a folder: the sequences, and the checkpoint where it comes with the program. Paths are absolute,
// because workers start elsewhere.
func (s *Subject) Job(folder string, threads int) (shards.Job, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return shards.Job{}, err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return shards.Job{}, err
	}
	j := shards.Job{Folder: folder, Threads: threads}
	if s.Name == embeddedName {
		j.Checkpoint = filepath.Join(folder, s.Sum+".anelab")
		data, err := embeddedBytes()
		if err != nil {
			return j, err
		}
		if err := shards.WriteFile(j.Checkpoint, data); err != nil {
			return j, err
		}
	} else if j.Checkpoint, err = filepath.Abs(s.Name); err != nil {
		return j, err
	}
	j.Set, err = shards.WriteSet(folder, s.Set)
	return j, err
}

// Parts are the units that trials are measured in, in order: the same for every runner, so that sums are the same.
func Parts(trials []*Trial) []quality.Unit {
	var all []quality.Unit
	for _, t := range trials {
		all = append(all, t.Unit.Parts(partSize)...)
	}
	return all
}

// Collect adds up the shards of trials; all must be there.
func Collect(folder string, trials []*Trial) error {
	for _, t := range trials {
		for _, part := range t.Unit.Parts(partSize) {
			sums, done, err := shards.Read(folder, part)
			if err != nil {
				return err
			}
			if !done {
				panic("trial: shards collected before they are there")
			}
			t.Sums.Add(&sums)
		}
	}
	return nil
}
