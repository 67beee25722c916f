// Package proof answers: do the chunks of a layout compute what the whole model computes, and is that what a reference recorded?
//
// A [Subject] is a checkpoint in one numerics mode, cut by a plan. Three kinds of comparison are made:
//
//	chunks = whole     every tap of every case, equal element by element
//	whole  = golden    recorded tensors within the tolerances of their kind, greedy tokens identical
//	whole  ~ golden    where no target exists (see [Target]): the distance, for information
//
// With the first two, chunks agree with the golden too. Cases are the prompts of the goldens; without any, one that is made up.
// A prompt goes through the chunks token by token; a long one is prefilled by the whole model and its cache imported, as a host
// would do it.
//
// Packages that a converter made are put to the proof in two ways. A chain of chunks with its checkpoint ([RunPackages]):
//
//	weights  = checkpoint  dense ones in fp16, palettes near
//	packages = whole       the graphs, op by op, and the model with the packages' weights, rounding where the graphs do
//	Core ML  ≈ packages    on a Mac
//
// One program by itself on recorded calls ([RunProgram]): with another program, op by op, or with recorded results.
//
// Start at [Run], [RunPackages] and [RunProgram].
package proof
