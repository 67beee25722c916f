// Package shards answers: which units of a measurement are done, and who does the others?
//
// A folder holds one file for every finished [quality.Unit], under the unit's content hash: unit and sums as JSON. A file appears
// whole or not at all, and what it says depends on its name alone, so any number of [Worker]s, in any processes on machines that
// share the folder, may fill it in any order, twice or after a kill, and the folder ends with the same bytes.
//
// Sums of floating-point numbers depend on their order: whoever adds up shards does it in the order of units.
//
// Start at [Open].
package shards
