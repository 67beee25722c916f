// Package metrics answers: what does this printed figure mean?
//
// Every quantity that the command prints has one [Entry]: name, unit, definition, and what it is computed from. The verb
// explain prints an entry, and docs/metrics.md is [Markdown] of all of them, so the two cannot differ. The terms of the cost
// model take unit and quantity from package anesim.
//
// Start at [Find].
package metrics
