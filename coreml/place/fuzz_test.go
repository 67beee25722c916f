package place

import (
	"os"
	"path/filepath"
	"testing"

	"anelab/coreml/mil"
	"anelab/coreml/miltext"
)

// FuzzPrograms reads any sound program as a placement and as a plan.
func FuzzPrograms(f *testing.F) {
	paths, _ := filepath.Glob(filepath.Join("testdata", "*.mil"))
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add(`program(1.3)
{
    func main<ios18>(tensor<fp16, [1, 2, 8]> x, tensor<fp16, [1, 4, 8]> k) {
            tensor<fp16, [1, 2, 4]> s = matmul(transpose_x = bool(false), transpose_y = bool(true), x = x, y = k)[name = string("s")];
            tensor<fp16, [1, 2, 4]> p = softmax(axis = int32(-1), x = s)[name = string("p")];
            tensor<fp16, [1, 2, 8]> y = matmul(transpose_x = bool(false), transpose_y = bool(false), x = p, y = k)[name = string("y")];
        } -> (y);
}`)
	f.Fuzz(func(t *testing.T, text string) {
		p, _, err := miltext.Parse("fuzz", text)
		if err != nil || mil.Check(p) != nil {
			return
		}
		for _, fn := range p.Functions {
			if at := Predict(fn, Options{}); at.Count("ANE")+at.Count("CPU")+at.Count("GPU") != len(at.Ops) {
				t.Fatal("an op is nowhere")
			}
			_, _, _, _ = Recorded(fn)
			_, _ = ReadPlan([]*mil.Function{fn})
		}
	})
}
