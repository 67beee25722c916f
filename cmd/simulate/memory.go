package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"anelab/cmd/simulate/internal/timing"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/checkpoint"
)

// addMemory declares how much a run may hold.
func addMemory(cmd *cobra.Command, limit *byteSize) {
	cmd.Flags().Var(limit, "memory", "refuse a model and context that need more than `SIZE`, such as 4.1GB (default: what the machine has)")
}

// demand is what a run is going to hold: the weights of a checkpoint, and keys and values.
type demand struct {
	mode      string
	options   gemma4.Options
	context   int
	sequences int // in memory at a time
}

// fits refuses a run that memory cannot hold, before a weight is read.
func (d demand) fits(src *checkpoint.Checkpoint, limit byteSize) error {
	a, err := arith.New(d.mode, 1)
	if err != nil {
		return usageError{err}
	}
	kv, err := gemma4.KVBytes(src.Config, a, d.options, d.context)
	if err != nil {
		return err
	}
	weights, err := src.WeightBytes()
	if err != nil {
		return err
	}
	return enoughMemory(weights+kv*int64(d.sequences), d.context, limit)
}

// enoughMemory compares what a run must hold with what it may, or with what the machine has.
func enoughMemory(need int64, context int, limit byteSize) error {
	have, whose := limit.bytes, "--memory is "+limit.text
	if have == 0 {
		have = timing.MemoryBytes()
		whose = fmt.Sprintf("this machine has %.4g MB", float64(have)/1e6)
	}
	if have == 0 || need <= have {
		return nil
	}
	return fmt.Errorf("a context of %d needs %.4g MB of memory (%d bytes) and %s; ask for less context, or pack the model in fewer bits",
		context, float64(need)/1e6, need, whose)
}
