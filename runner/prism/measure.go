package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"anelab/quality"
	"anelab/quality/shards"
)

func init() {
	register.DoFn3x1[context.Context, string, func(string), error](&measureFn{})
	register.Emitter1[string]()
}

// measureFn makes the shards of a bundle's units and emits their names. Fields are JSON, because Beam ships them to its workers.
//
// A bundle hands over its elements one by one. They are passed to worker processes as they come and waited for when the bundle
// ends: a failed unit fails the bundle, the runner retries it as it sees fit, and units that are done cost nothing then.
type measureFn struct {
	Job       string // of shards.Job
	Processes int

	crew    *crew
	running sync.WaitGroup
	mu      sync.Mutex
	failed  []error
}

// Setup joins the crew of the job. A Beam worker runs bundles side by side, each with a measureFn of its own, and all of them share
// one crew.
func (f *measureFn) Setup() error {
	var job shards.Job
	if err := json.Unmarshal([]byte(f.Job), &job); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	crews.Lock()
	defer crews.Unlock()
	if crews.of[f.Job] == nil {
		if crews.of[f.Job], err = newCrew(self, job, f.Processes); err != nil {
			return err
		}
	}
	f.crew = crews.of[f.Job]
	return nil
}

// crews of this Beam worker, by job. They are kept, with the models they have loaded, until it ends; their input ends then, and
// with it their processes.
var crews = struct {
	sync.Mutex
	of map[string]*crew
}{of: map[string]*crew{}}

// ProcessElement hands a unit to the next free worker.
func (f *measureFn) ProcessElement(ctx context.Context, unit string, emit func(string)) error {
	var u quality.Unit
	if err := json.Unmarshal([]byte(unit), &u); err != nil {
		return err
	}
	w, err := f.crew.free(ctx)
	if err != nil {
		return err
	}
	emit(u.Name())
	f.running.Add(1)
	go func() {
		defer f.running.Done()
		defer f.crew.back(w)
		if err := w.do(ctx, u); err != nil {
			f.mu.Lock()
			f.failed = append(f.failed, fmt.Errorf("unit %s: %w", u.Name(), err))
			f.mu.Unlock()
		}
	}()
	return nil
}

// FinishBundle waits for the units of the bundle.
func (f *measureFn) FinishBundle(context.Context, func(string)) error {
	f.running.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	err := errors.Join(f.failed...)
	f.failed = nil
	return err
}
