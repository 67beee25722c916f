package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/results"
	"anelab/internal/format"
)

func newMergeCmd(c *console.Console) *cobra.Command {
	path := ""
	cmd := &cobra.Command{
		Use:   "merge RESULTS…",
		Short: "Put the parts of a sweep together",
		Long: `Write the records of several sweeps as one, each once, in the order of the
files. Records of different models, devices or copy-backs do not mix, and two
different times of one layout are an error.`,
		Example: `  simulate sweep --shard 1/2 --format jsonl -o 1.jsonl
  simulate sweep --shard 2/2 --format jsonl -o 2.jsonl
  simulate merge 1.jsonl 2.jsonl -o all.jsonl`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("merge takes files of records; see simulate merge --help")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return runMerge(c, args, path) },
	}
	cmd.Flags().StringVarP(&path, "output", "o", "", "write the records to `FILE`, complete or not at all")
	return cmd
}

func runMerge(c *console.Console, paths []string, to string) error {
	out, err := (&outputFlags{path: to}).open(c)
	if err != nil {
		return err
	}
	var set results.Set
	for _, path := range paths {
		err := addResults(&set, path, func(_ results.Record, line []byte) error {
			_, err := out.Write(line)
			return errors.Join(err, out.WriteByte('\n'))
		})
		if err != nil {
			out.Discard()
			return err
		}
	}
	if err := out.Commit(); err != nil {
		return err
	}
	fmt.Fprintf(c.Err, "simulate: %d records of %s, %d were there twice\n", set.Len(), count(len(paths), "file"), set.Twice)
	return nil
}

// addResults reads one file of records.
func addResults(set *results.Set, path string, keep func(results.Record, []byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return &format.Error{Path: path, Got: reason(err).Error(), Want: "records of simulate sweep --format jsonl"}
	}
	return errors.Join(set.Add(path, f, keep), f.Close())
}
