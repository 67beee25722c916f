package device_test

import (
	"errors"
	"fmt"

	"anelab/coreml/device"
	"anelab/coreml/mil"
)

// A package runs on a Mac; elsewhere the error says how to get there.
func ExampleOpen() {
	m, err := device.Open("chunk1.mlpackage", device.CPUAndANE)
	if errors.Is(err, device.ErrUnavailable) {
		fmt.Println(err)
		return
	} else if err != nil {
		panic(err)
	}
	defer m.Close()
	p, err := m.Predict("main", map[string]*device.Tensor{"x": device.NewTensor(mil.Float16, 1, 1, 1536)}, nil)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%v in %.1f ms\n", p.Outputs["y"].Shape, 1e3*p.PredictSeconds)
}
