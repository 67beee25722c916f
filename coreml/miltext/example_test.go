package miltext_test

import (
	"fmt"
	"log"
	"os"

	"anelab/coreml/mil"
	"anelab/coreml/miltext"
)

func ExampleParse() {
	p, dialect, err := miltext.Parse("example", `program(1.0) { func main<ios16>(tensor<fp16, [1, 10]> x) {
		tensor<fp16, [1, 10]> y = mul(x = x, y = tensor<fp16, []>(0x1p+1))[name = tensor<string, []>("y")]; } -> (y); }`)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(dialect, mil.Check(p))
	if err := miltext.Print(os.Stdout, p, miltext.Dialect13); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 1.0 <nil>
	// program(1.3)
	// {
	//     func main<ios16>(tensor<fp16, [1, 10]> x) {
	//             tensor<fp16, [1, 10]> y = mul(x = x, y = fp16(0x1p+1))[name = string("y")];
	//         } -> (y);
	// }
}
