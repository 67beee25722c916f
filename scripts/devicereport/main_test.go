package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/coreml/device"
	"anelab/internal/shareddata"
)

// hand: the calls beside a package, with the limits of the index.
func TestRecordedCases(t *testing.T) {
	ops := filepath.Join(shareddata.ModuleRoot(t), "testdata", "coreml", "ops")
	list, err := recordedCases(filepath.Join(ops, "state_slice_update_attention.mlpackage"))
	require.NoError(t, err)
	require.Len(t, list, 6)
	require.Equal(t, device.Zeros, list[0].Start)
	require.Equal(t, device.Carried, list[5].Start)
	require.Equal(t, "main", list[3].Function)
	require.NotEmpty(t, list[3].Inputs)
	require.Equal(t, 0.00157, list[3].Want["y"].Atol)
	require.Equal(t, 0.001953125, list[3].Want["y"].Rtol)
	list, err = recordedCases(filepath.Join(ops, "nothing.mlpackage"))
	require.NoError(t, err)
	require.Empty(t, list)
}

// hand: without Core ML the command says what to do, and prints nothing where a report is expected.
func TestRun(t *testing.T) {
	if device.Available() == nil {
		t.Skip("Core ML is here")
	}
	var out, log bytes.Buffer
	require.Equal(t, failed, run(t.Context(), []string{"x.mlpackage"}, &out, &log))
	require.Contains(t, log.String(), "device_validate.sh")
	require.Empty(t, out.String())
	for _, args := range [][]string{nil, {"-units", "npu", "x"}, {"-calls", "-1", "x"}} {
		require.Equal(t, misused, run(t.Context(), args, &out, &log))
	}
	s, paths, err := session([]string{"-layout", "0-14|15-34+head", "-surface", "-units", "all", "a", "b"}, &log)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, paths)
	require.Equal(t, device.Surface, s.Backing)
	require.Equal(t, device.All, s.Units)
	require.Equal(t, "gemma-4-e2b", s.Model)
}

// hand: anything that went wrong is on the log and in the exit code.
func TestVerdict(t *testing.T) {
	yes, no := true, false
	good := device.ReportModel{Path: "good", Cases: []device.ReportCase{{Within: &yes}, {}}}
	var log bytes.Buffer
	require.Equal(t, fine, verdict(&device.Report{Models: []device.ReportModel{good}}, &log))
	require.Empty(t, log.String())
	for _, bad := range []device.ReportModel{{Path: "bad", Error: "does not load"}, {Path: "bad", Cases: []device.ReportCase{{Within: &no}}}, {Path: "bad", Cases: []device.ReportCase{{Error: "fell over"}}}} {
		log.Reset()
		require.Equal(t, failed, verdict(&device.Report{Models: []device.ReportModel{good, bad}}, &log))
		require.Contains(t, log.String(), "bad: ")
	}
}
