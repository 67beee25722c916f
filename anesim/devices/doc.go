// Package devices answers: which numbers do we believe of a device, and where did each come from?
//
// A device is one YAML file. Every constant of the cost model has a value, a standard deviation, a unit, a source, a
// confidence, a covariance group and the prior that it started from:
//
//	constants:
//	  weight_stream:
//	    value: 1.3e-11          # SI
//	    sd: 2.4e-13
//	    unit: s/byte
//	    source: "calibrated on 6 experiments, 20 rows; …"
//	    confidence: high
//	    group: stream
//	    prior: {value: 1.54e-11, sd: 4.6e-12, source: "…"}
//
// Values, correlation and evidence are written by calibration: edit priors, then calibrate. A file without evidence is a
// device that nobody measured; its values are its priors.
//
// Start at [Load]; [Read] takes a file of one's own and [Write] makes one.
package devices
