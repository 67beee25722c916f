package device

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math"

	"anelab/coreml/mil"
	"anelab/internal/format"
)

// ReportVersion is the format of reports, docs/schema/device_report.schema.json. Keys may be added without a new one.
const ReportVersion = "anelab-device-report/1"

// Report is what a session on a device found: raw times, so that nothing has to be trusted but a clock, and outputs, so that they can
// be compared elsewhere. Package devicelog reads the times, [ReadReport] all of it. Times are milliseconds.
type Report struct {
	FormatVersion string        `json:"format_version"`
	Experiment    string        `json:"experiment"`
	Date          string        `json:"date"` // "2026-04-14"
	Device        string        `json:"device"`
	SoC           string        `json:"soc"`
	OS            string        `json:"os"`
	Model         string        `json:"model"`
	Units         string        `json:"units"`
	Context       int           `json:"context"`     // length of the full mask; 0 without one
	WeightBits    int           `json:"weight_bits"` // of most weights
	GroupSize     int           `json:"group_size"`  // rows that share a palette; 0 without palettes
	CopyBack      string        `json:"copyback"`    // caches are not copied back between timed calls: "none"
	Layout        string        `json:"layout"`      // "0-7|8-24|25-34+head", one part for each model; "" if the models are no chunks
	Chunks        []ReportChunk `json:"chunks"`      // with a layout: times of its parts
	StepMs        []float64     `json:"step_ms"`     // with a layout: predictions of all parts, one after another
	Thermal       string        `json:"thermal"`     // when the session ended
	Audit         *ReportAudit  `json:"audit"`       // sums over the models; null if no plan could be had
	Models        []ReportModel `json:"models"`      // in the order given
}

// ReportChunk is the times of one part of the layout, in the order of the calls. The first ones are cold.
type ReportChunk struct {
	Index int       `json:"index"` // from 1
	Ms    []float64 `json:"ms"`
}

// ReportAudit counts ops off the Neural Engine, among those that are placed.
type ReportAudit struct {
	Off int `json:"off"`
	Ops int `json:"ops"`
}

// ReportModel is one package.
type ReportModel struct {
	Path        string           `json:"path"`
	Function    string           `json:"function"` // the one that is timed
	WeightBytes int64            `json:"weight_bytes"`
	CompileMs   float64          `json:"compile_ms"`
	LoadMs      float64          `json:"load_ms"`
	Ms          []float64        `json:"ms"`      // predictions, in order
	CopyMs      []float64        `json:"copy_ms"` // taking outputs out, in order
	Placement   *ReportPlacement `json:"placement"`
	Cases       []ReportCase     `json:"cases"`
	Error       string           `json:"error"` // what ended the work on this package; "" if nothing did
}

// ReportPlacement is the plan of the timed function.
type ReportPlacement struct {
	ANE      int           `json:"ane"`
	GPU      int           `json:"gpu"`
	CPU      int           `json:"cpu"`
	Unplaced int           `json:"unplaced"`
	Off      []ReportOffOp `json:"off"` // ops that are not on the Neural Engine
	Error    string        `json:"error"`
}

// ReportOffOp is an op that is not on the Neural Engine.
type ReportOffOp struct {
	Op        string      `json:"op"`
	Output    string      `json:"output"`
	Processor Processor   `json:"processor"`
	Supported []Processor `json:"supported"`
	Weight    float64     `json:"weight"`
}

// ReportCase is one call with known inputs.
type ReportCase struct {
	Name     string         `json:"name"`
	Function string         `json:"function"`
	Outputs  []ReportTensor `json:"outputs"` // by name
	Within   *bool          `json:"within"`  // null if nothing was expected
	Error    string         `json:"error"`
}

// ReportTensor is an output. Its elements are little-endian, row-major, in its own type.
type ReportTensor struct {
	Name   string           `json:"name"`
	DType  string           `json:"dtype"`
	Shape  []int            `json:"shape"`
	SHA256 string           `json:"sha256"`
	Base64 string           `json:"base64"` // "" if there are more than 1 MiB
	Error  *ReportDeviation `json:"deviation"`
}

// ReportDeviation is how far an output is from what was expected.
type ReportDeviation struct {
	MaxAbs    float64 `json:"max_abs"`    // among finite elements
	RelRMS    float64 `json:"rel_rms"`    // ‖got−want‖ / ‖want‖, of finite elements
	NonFinite int     `json:"non_finite"` // elements that are finite on one side only, or other infinities
	Within    bool    `json:"within"`
}

// mostInline bounds what a report holds of one output.
const mostInline = 1 << 20

func dense(d mil.DType, shape []int) layout {
	l := layout{dtype: d, shape: shape, strides: make([]int, len(shape))}
	for i, stride := len(shape)-1, 1; i >= 0; i-- {
		l.strides[i] = stride
		stride *= shape[i]
	}
	return l
}

// reportTensor packs an output.
func reportTensor(name string, t *Tensor) ReportTensor {
	packed := make([]byte, t.DType.Bytes(int64(count(t.Shape))))
	dense(t.DType, t.Shape).encode(packed, t)
	sum := sha256.Sum256(packed)
	r := ReportTensor{Name: name, DType: t.DType.String(), Shape: t.Shape, SHA256: hex.EncodeToString(sum[:])}
	if r.Shape == nil {
		r.Shape = []int{}
	}
	if len(packed) <= mostInline {
		r.Base64 = base64.StdEncoding.EncodeToString(packed)
	}
	return r
}

// Tensor unpacks an output; nil if the report does not hold its elements.
func (r *ReportTensor) Tensor() (*Tensor, error) {
	fault := func(got, want string) error {
		return &format.Error{Path: "device report", Field: r.Name, Got: got, Want: want, Err: ErrData}
	}
	d, known := mil.ParseDType(r.DType)
	if !known || arrayType(d) == 0 {
		return nil, fault("dtype "+r.DType, "fp16, fp32, fp64, int32 or int8")
	}
	n := int64(1)
	for _, size := range r.Shape {
		if size < 0 || size > 0 && n > math.MaxInt32/int64(size) {
			return nil, fault(typeText(d, r.Shape), "a shape")
		}
		n *= int64(size)
	}
	if r.Base64 == "" && n > 0 {
		return nil, nil
	}
	packed, err := base64.StdEncoding.DecodeString(r.Base64)
	if err != nil || int64(len(packed)) != d.Bytes(n) {
		return nil, fault("elements of another size than "+typeText(d, r.Shape), "base64 of as many elements")
	}
	if sum := sha256.Sum256(packed); hex.EncodeToString(sum[:]) != r.SHA256 {
		return nil, fault("elements with another checksum", r.SHA256)
	}
	return dense(d, r.Shape).decode(packed), nil
}

// ReadReport reads a report. Elements of outputs are unpacked by [ReportTensor.Tensor].
func ReadReport(path string, data []byte) (*Report, error) {
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, &format.Error{Path: path, Err: err, Want: "a device report"}
	}
	if r.FormatVersion != ReportVersion {
		return nil, &format.Error{Path: path, Field: "format_version", Got: r.FormatVersion, Want: ReportVersion}
	}
	return &r, nil
}
