package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"anelab/cmd/simulate/internal/console"
	"anelab/coreml/mil"
	"anelab/coreml/mil/blob"
	"anelab/coreml/mlpackage"
	"anelab/internal/half"
)

// largePackage writes a package with one linear, rows·cols weights of many values.
func largePackage(t *testing.T, path string, rows, cols int64) {
	weights := make([]byte, 0, 2*rows*cols)
	for i := range rows * cols {
		weights = binary.LittleEndian.AppendUint16(weights, half.F32ToF16(float32((i*7919)%10007)/10007-0.5))
	}
	op := func(kind, name string, t mil.Type, a mil.Attribute, args ...mil.Argument) *mil.Op {
		attributes := []mil.Attribute{{Name: "name", Value: mil.Scalar(name)}}
		if a.Value != nil {
			attributes = append(attributes, a)
		}
		return &mil.Op{Type: kind, Inputs: args, Outputs: []mil.Variable{{Name: name, Type: t}}, Attributes: attributes}
	}
	w := mil.TensorOf(mil.Float16, rows, cols)
	x, y := mil.TensorOf(mil.Float16, 1, cols), mil.TensorOf(mil.Float16, 1, rows)
	f := &mil.Function{Name: mil.MainFunction, Opset: mil.CoreML8, Inputs: []mil.Input{{Variable: mil.Variable{Name: "x", Type: x}}}, Body: &mil.Block{Outputs: []string{"y"}, Ops: []*mil.Op{
		op("const", "w", w, mil.Attribute{Name: "val", Value: &mil.Value{Type: w, Content: blob.Memory(weights)}}),
		op("linear", "y", y, mil.Attribute{}, mil.Arg("weight", mil.Ref("w")), mil.Arg("x", mil.Ref("x"))),
	}}}
	port := func(name string, t mil.Type) mil.Feature {
		return mil.Feature{Name: name, Kind: mil.ArrayPort, Array: &mil.ArrayFeature{DType: t.DType, Shape: t.Shape}}
	}
	d := &mil.Description{Interface: mil.Interface{Inputs: []mil.Feature{port("x", x)}, Outputs: []mil.Feature{port("y", y)}}}
	p := &mlpackage.Package{Program: &mil.Program{SpecVersion: int(mil.CoreML8), Functions: []*mil.Function{f}}, Description: d}
	require.NoError(t, mlpackage.Write(context.Background(), path, p, nil))
}

// hand: an interrupted run answers 130, and neither the package nor what waited for it is left; a package that was there stays.
func TestPalettizeInterrupted(t *testing.T) {
	folder := t.TempDir()
	in, out := filepath.Join(folder, "in.mlpackage"), filepath.Join(folder, "out.mlpackage")
	largePackage(t, in, 2048, 1024)
	largePackage(t, out, 8, 8)
	before, err := os.ReadDir(folder)
	require.NoError(t, err)

	ctx, stop := context.WithCancel(context.Background())
	time.AfterFunc(10*time.Millisecond, stop)
	c := &console.Console{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}
	root := newRootCmd(c)
	root.SetArgs([]string{"palettize", in, "-o", out, "--bits", "8", "--group", "8"})
	err = root.ExecuteContext(ctx)
	require.Equal(t, exitInterrupted, finish(ctx, c, err), "%v", err)
	after, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Equal(t, len(before), len(after))
	p, err := mlpackage.Open(out)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 8}, p.Program.Functions[0].Inputs[0].Type.Shape)
	require.NoError(t, p.Close())
}
