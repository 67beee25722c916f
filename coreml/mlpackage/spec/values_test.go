package spec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/coreml/mil"
	"anelab/coreml/miltext"
	"anelab/coreml/mlpackage/spec"
)

func TestValuesOfEveryKindComeBack(t *testing.T) { // hand
	p, _, err := miltext.Parse("t", `program(1.3) [buildInfo = dict<string, tuple<list<int32, ?>, fp64>>({{"a", ([1, -2], 0.5)}})] { func main<ios18>(tensor<fp16, [1, ?]> x, state<tensor<fp32, [2]>> s)
		[a = list<tensor<int8, [2]>, 2>([[1, -1], [2, -2]])] {
		tensor<int16, [3]> i16 = const()[val = tensor<int16, [3]>([-32768, 0, 32767])];
		tensor<uint16, [1]> u16 = const()[val = tensor<uint16, [1]>([65535])];
		tensor<int64, [2]> i64 = const()[val = tensor<int64, [2]>([-9223372036854775808, 5])];
		uint64 u64 = const()[val = uint64(18446744073709551615)];
		tensor<fp32, [2]> f32 = const()[val = tensor<fp32, [2]>([-0x1.8p-3, inf])];
		tensor<fp64, [1]> f64 = const()[val = tensor<fp64, [1]>([0x1p-1074])];
		tensor<bf16, [1]> b16 = const()[val = tensor<bf16, [1]>([0x1.8p+0])];
		tensor<uint3, [5]> u3 = const()[val = tensor<uint3, [5]>([1, 2, 3, 4, 7])];
		tensor<int4, [3]> i4 = const()[val = tensor<int4, [3]>([-8, 7, -1])];
		tensor<bool, [2, 1]> b = const()[val = tensor<bool, [2, 1]>([[true], [false]])];
		tensor<string, [2]> w = const()[val = tensor<string, [2]>(["", "é\"\\"])];
		tensor<fp16, [0]> none = const()[val = tensor<fp16, [0]>([])];
		tensor<fp16, [2, 3]> far = const()[val = tensor<fp16, [2, 3]>(BLOBFILE(path = string("@model_path/w"), offset = uint64(64)))];
		} -> (i16); }`)
	require.NoError(t, err)
	require.NoError(t, mil.Check(p))
	p.SpecVersion = 9
	m, err := spec.Decode("m", string(spec.Encode(&spec.Model{Program: p, Description: &mil.Description{}}, nil)))
	require.NoError(t, err)
	require.Empty(t, mil.Diff(p, m.Program))
	require.True(t, p.Attribute("buildInfo").Equal(m.Program.Attribute("buildInfo")))
	require.True(t, p.Functions[0].Attribute("a").Equal(m.Program.Functions[0].Attribute("a")))
}
