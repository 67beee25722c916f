// Package search answers: which cuts of a model are fast on a device?
//
// A [Space] is every way to cut into some numbers of chunks, or a list of layouts. [Space.Candidates] streams them at one
// context, each as a plan with the limits of the device that refuse it. [Space.Rank] keeps the fastest few and the ranks of the
// presets; nothing else is held in memory, whatever the size of the space.
//
// A candidate is valid until the next one is asked for: plans share chunks and slices.
//
// Start at [Space.Rank].
package search
