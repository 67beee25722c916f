package npy

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/format"
	"anelab/quant"
)

// npy is a file with the given header and data.
func file(version byte, header string, data ...byte) []byte {
	b := append([]byte(magic), version, 0)
	if version == 1 {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
	} else {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(header)))
	}
	return append(append(b, header...), data...)
}

func TestHOST14Reads(t *testing.T) { // hand: numpy's own format description
	four := make([]byte, 4*4)
	for name, c := range map[string]struct {
		file  []byte
		dtype quant.DType
		shape []int
	}{
		"as numpy writes":     {file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }          \n", four...), quant.F32, []int{2, 2}},
		"version 2":           {file(2, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n", four...), quant.F32, []int{2, 2}},
		"version 3":           {file(3, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n", four...), quant.F32, []int{2, 2}},
		"keys permuted":       {file(1, "{'shape': (4,), 'fortran_order': False, 'descr': '<f4'}", four...), quant.F32, []int{4}},
		"double spaces":       {file(1, "{  'descr' :  '<f2',  'fortran_order':  False,  'shape':  (  2,  4  ),  }  \n", four...), quant.F16, []int{2, 4}},
		"double quotes":       {file(1, `{"descr": "<f8", "fortran_order": False, "shape": (2,)}`, four...), quant.F64, []int{2}},
		"bytes":               {file(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (16,)}", four...), quant.U8, []int{16}},
		"booleans":            {file(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (2, 8)}", four...), quant.Bool, []int{2, 8}},
		"no axis":             {file(1, "{'descr': '<i4', 'fortran_order': False, 'shape': ()}", four[:4]...), quant.I32, []int{}},
		"empty":               {file(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (0, 3)}"), quant.I64, []int{0, 3}},
		"comma after the end": {file(1, "{'descr': '|i1', 'fortran_order': False, 'shape': (4, 4,)}", four...), quant.I8, []int{4, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			x, err := Parse("x.npy", c.file)
			require.NoError(t, err)
			require.Equal(t, c.dtype, x.DType)
			require.Equal(t, c.shape, x.Shape)
			require.Len(t, x.Data, x.Len()*x.DType.Size())
		})
	}
}

func TestHOST14Refuses(t *testing.T) { // hand: the case's triggers
	four := make([]byte, 4*4)
	head := func(descr, order, shape string) string {
		return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n"
	}
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"the ten bytes":          {[]byte{0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 0x01, 0x00, 0xf8, 0xff}, "header length 65528 with 0 bytes left"},
		"nothing":                {nil, "no .npy file"},
		"magic alone":            {[]byte(magic), "no .npy file"},
		"version 4":              {file(4, head("'<f4'", "False", "(4,)"), four...), "version 4.0"},
		"version 2 cut short":    {[]byte(magic + "\x02\x00\x05\x00"), "version 2.0"},
		"huge header":            {append([]byte(magic), 2, 0, 0xff, 0xff, 0xff, 0xff), "header length 4294967295"},
		"grouped digits":         {file(1, head("'|u1'", "False", "(2,621, 401)"), four...), "[2 621 401]"},
		"Fortran order":          {file(1, head("'<f4'", "True", "(2, 2)"), four...), "fortran_order: True, want False; save it with numpy.ascontiguousarray"},
		"big endian":             {file(1, head("'>f4'", "False", "(4,)"), four...), "descr: '>f4', want <f4"},
		"objects":                {file(1, head("'|O'", "False", "(4,)"), four...), "unpickled"},
		"two raw bytes":          {file(1, head("'<V2'", "False", "(8,)"), four...), "'<V2'"},
		"structure":              {file(1, head("[('a', '<f4')]", "False", "(4,)"), four...), "descr: got \"[('a', '<f4')], \", want a string"},
		"number for a tuple":     {file(1, head("'<f4'", "False", "(4)"), four...), "want a tuple: (4,)"},
		"bare number":            {file(1, head("'<f4'", "False", "4"), four...), `want "("`},
		"too little data":        {file(1, head("'<f4'", "False", "(4,)"), four[:15]...), "15 bytes of data"},
		"too much data":          {file(1, head("'<f4'", "False", "(3,)"), four...), "16 bytes of data"},
		"huge shape":             {file(1, head("'<f4'", "False", "(4294967296, 4294967296, 4)"), four...), "[4294967296 4294967296 4]"},
		"product wraps to data":  {file(1, head("'<f4'", "False", "(4611686018427387908,)"), four...), "[4611686018427387908]"},
		"a dimension too large":  {file(1, head("'<f4'", "False", "(18446744073709551616,)"), four...), "want a number"},
		"negative":               {file(1, head("'<f4'", "False", "(-4,)"), four...), "want a number"},
		"33 axes":                {file(1, head("'<f4'", "False", "("+strings.Repeat("1, ", 33)+")"), four...), "want a comma or )"},
		"lower-case true":        {file(1, head("'<f4'", "false", "(4,)"), four...), "want True or False"},
		"descr missing":          {file(1, "{'fortran_order': False, 'shape': (4,)}", four...), "no descr"},
		"shape twice":            {file(1, "{'shape': (4,), 'shape': (4,), 'fortran_order': False, 'descr': '<f4'}", four...), "shape is there twice"},
		"unknown key":            {file(1, "{'order': 'C'}", four...), "order: unknown key"},
		"more than a dictionary": {file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4,)} + {}", four...), "want nothing after the dictionary"},
		"no end":                 {file(1, "{'descr': '<f4", four...), "a string without its end"},
		"empty header":           {file(1, "", four...), "got the end"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("x.npy", c.file)
			var fault *format.Error
			require.ErrorAs(t, err, &fault)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestWriteNPY(t *testing.T) { // hand and invariant
	require.Equal(t, "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }"+strings.Repeat(" ", 58)+"\n\x00\x00\x80?\x00\x00\x00\xc0",
		string(Encode([]int{1, 2}, []float32{1, -2})))
	for _, shape := range [][]int{{}, {1}, {5}, {2, 3}, {7, 1, 2}, {0, 3}} {
		values := make([]float32, quant.Tensor{Shape: shape}.Len())
		for i := range values {
			values[i] = float32(i) / 3
		}
		path := filepath.Join(t.TempDir(), "x.npy")
		require.NoError(t, Write(path, shape, values))
		x, err := Read(path)
		require.NoError(t, err)
		require.Equal(t, shape, x.Shape)
		got, err := x.Floats()
		require.NoError(t, err)
		require.Equal(t, values, got)
		left, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		require.Len(t, left, 1, "no temporary file stays")
	}
	require.ErrorContains(t, Write(filepath.Join(t.TempDir(), "none", "x.npy"), nil, []float32{1}), "x.npy")
}

func FuzzParse(f *testing.F) {
	f.Add(Encode([]int{2, 3}, make([]float32, 6)))
	f.Add(Encode(nil, []float32{1}))
	f.Add([]byte{0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 0x01, 0x00, 0xf8, 0xff})
	f.Add(file(2, "{'shape': (0, 3), 'fortran_order': True, 'descr': '|O'}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := Parse("fuzz", data)
		if err != nil {
			return
		}
		require.Len(t, x.Data, x.Len()*x.DType.Size())
		values, err := x.Floats()
		require.NoError(t, err)
		again, err := Parse("again", Encode(x.Shape, values))
		require.NoError(t, err)
		require.Equal(t, x.Shape, again.Shape)
	})
}
