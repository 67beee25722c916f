package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"anelab/quality"
	"anelab/quality/shards"
)

// plainRunner stands in for anelab-prism in scripts: it does the units of a request one by one, and dies before the unit that
// DIE_BEFORE counts.
func plainRunner() {
	var r struct {
		Job   shards.Job     `json:"job"`
		Units []quality.Unit `json:"units"`
	}
	fail := func(err error) {
		fmt.Fprintln(os.Stderr, "anelab-prism:", err)
		os.Exit(1)
	}
	if err := json.NewDecoder(os.Stdin).Decode(&r); err != nil {
		fail(err)
	}
	w, err := shards.Open(r.Job)
	if err != nil {
		fail(err)
	}
	defer w.Close()
	die, _ := strconv.Atoi(os.Getenv("DIE_BEFORE"))
	for i, u := range r.Units {
		if i+1 == die {
			fail(fmt.Errorf("told to stop before unit %d of %d", i+1, len(r.Units)))
		}
		if err := w.Do(context.Background(), u); err != nil {
			fail(err)
		}
	}
}
