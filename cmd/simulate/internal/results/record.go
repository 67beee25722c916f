package results

import "anelab/anesim"

// Record is one candidate of a sweep, complete in itself.
type Record struct {
	FormatVersion string          `json:"format_version"`
	Model         string          `json:"model"`
	Device        string          `json:"device"`
	DeviceHash    string          `json:"device_sha256"`
	Layout        string          `json:"layout"`
	Preset        string          `json:"preset"` // "" for a layout without a name
	Chunks        int             `json:"chunks"`
	Context       int             `json:"context"`
	CopyBack      anesim.CopyBack `json:"copyback"`
	TimeS         float64         `json:"time_s"`
	TimeRange     anesim.Range    `json:"time_range90_s"`
	TokPerSec     float64         `json:"tok_per_s"`
	Range         anesim.Range    `json:"tok_per_s_range90"`
	BoundBy       string          `json:"bound_by"`
	BoundShare    float64         `json:"bound_share"`
	Basis         string          `json:"basis"`
	Verdict       string          `json:"verdict"`    // of simulate check: yes, warning or no
	RefusedBy     []string        `json:"refused_by"` // its rules
	WarnedBy      []string        `json:"warned_by"`
	Rank          int             `json:"rank,omitempty"` // in ranked documents only
}

// Key tells the records of a sweep apart.
type Key struct {
	Layout  string
	Context int
}

// Key of the record.
func (r *Record) Key() Key { return Key{r.Layout, r.Context} }

// Conditions are what records that are compared must have in common.
type Conditions struct {
	FormatVersion, Model, Device, DeviceHash string
	CopyBack                                 anesim.CopyBack
}

// Conditions of the record.
func (r *Record) Conditions() Conditions {
	return Conditions{r.FormatVersion, r.Model, r.Device, r.DeviceHash, r.CopyBack}
}

// String names what differs between sweeps most often first.
func (c Conditions) String() string {
	return c.Model + " on " + c.Device + " (" + c.DeviceHash + "), copyback " + string(c.CopyBack) + ", format " + c.FormatVersion
}
