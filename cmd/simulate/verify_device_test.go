package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/coreml/device"
	"anelab/coreml/interp"
	"anelab/coreml/mlpackage"
	"anelab/internal/half"
	recordedcalls "anelab/parity/recorded"
)

// reportOf writes the report that a device would, with the interpreter's own outputs, which change may alter.
func reportOf(t *testing.T, name string, change func(outputs map[string]*interp.Tensor)) string {
	pkg, err := mlpackage.Open(inTestdata(t, "coreml/ops/"+name+".mlpackage"))
	require.NoError(t, err)
	defer pkg.Close()
	f, err := recordedcalls.Open(inTestdata(t, "coreml/ops/"+name+".safetensors"))
	require.NoError(t, err)
	defer f.Close()
	model := device.ReportModel{Path: "somewhere/" + name + ".mlpackage"}
	for _, c := range f.Cases {
		call, err := f.Call(c)
		require.NoError(t, err)
		out, err := interp.Run(t.Context(), pkg.Program, c.Function, call.Inputs, interp.Options{Precision: interp.FP16})
		require.NoError(t, err)
		change(out)
		reported := device.ReportCase{Name: c.Name, Function: c.Function}
		for port, x := range out {
			packed := []byte{}
			for _, v := range x.Floats {
				packed = binary.LittleEndian.AppendUint16(packed, half.F32ToF16(v))
			}
			sum := sha256.Sum256(packed)
			reported.Outputs = append(reported.Outputs, device.ReportTensor{Name: port, DType: "fp16", Shape: x.Shape, SHA256: hex.EncodeToString(sum[:]),
				Base64: base64.StdEncoding.EncodeToString(packed)})
		}
		model.Cases = append(model.Cases, reported)
	}
	text, err := json.Marshal(device.Report{FormatVersion: device.ReportVersion, Models: []device.ReportModel{model}})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "report.json")
	require.NoError(t, os.WriteFile(path, text, 0o644))
	return path
}

// invariant: what a device has reported is held against the interpreter, or against recorded results; hand: one element is off by 1.
func TestVerifyReadsReportsOfDevices(t *testing.T) {
	pkg, calls := inTestdata(t, "coreml/ops/gemma_mlp_block.mlpackage"), inTestdata(t, "coreml/ops/gemma_mlp_block.safetensors")
	same := reportOf(t, "gemma_mlp_block", func(map[string]*interp.Tensor) {})
	code, out, errs := typed("verify", pkg, "--inputs", calls, "--device", same)
	require.Equal(t, exitDone, code, errs)
	require.Contains(t, out, "yes: Core ML as reported computes what gemma_mlp_block.mlpackage does in 2")

	off := reportOf(t, "gemma_mlp_block", func(o map[string]*interp.Tensor) { o["out"].Floats[5]++ })
	for _, against := range [][]string{{}, {"--expect", calls}} {
		code, out, errs = typed(append([]string{"verify", pkg, "--inputs", calls, "--device", off}, against...)...)
		require.Equal(t, exitNo, code, errs)
		require.Contains(t, out, "first parts at out, output")
	}

	code, _, errs = typed("verify", inTestdata(t, "coreml/ops/ios16_lut_w4.mlpackage"), "--inputs", inTestdata(t, "coreml/ops/ios16_lut_w4.safetensors"), "--device", same)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "models: no ios16_lut_w4.mlpackage, want gemma_mlp_block.mlpackage")
	code, _, errs = typed("verify", pkg, "--inputs", calls, "--device", calls)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "want a device report")
}
