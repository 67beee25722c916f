// Package timed answers: did anybody time this very chunk?
//
// Devices carry the timings that their constants were fitted on. The measurements hold more: chunks of other models, which say
// nothing about the constants but everything about a prediction that is printed beside them. [Rows.Fill] adds those.
//
// Start at [Rows.Fill].
package timed
