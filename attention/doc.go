// Package attention answers: which keys does a query see, and what must be remembered for that?
//
// A [Policy] is a small value that prints itself. It names the query heads that share a visibility rule, the absolute positions a
// query sees, and the rows a store must keep. The layer code, the stores, the planner and the cost model ask the policy and
// never a layer's kind, so a new mask-like policy is one file here, which registers its own text form.
//
//	policy            a query at position p sees                            keeps
//	full              0 … p                                                 everything
//	sliding:W, wfa:W  p−W+1 … p, W positions with p                         the last W rows
//	stream:S+R        0 … S−1 and p−R+1 … p                                 the first S rows and the last R
//	duo:S+R:1011      per query head: everything (1) or as stream (0)       everything, unless all heads stream
//	duokv:S+R:1       the same per KV head, which is how rows are stored    everything, unless all heads stream
//	flash:B           0 … p, computed in blocks of B positions              everything
//	blocks:NxB        its own block of B and the best N−1 before it         everything, and extremes of every block
//
// "/FORM" behind a policy says how its rows are stored: int8 (a byte a number), kivi:2 (2-bit codes, keys per channel, values per
// position), palu:R (R coordinates), like:L (the direction of layer L's row and an own length). A form belongs to the layer that
// stores the rows; layers that share them read what it left.
//
// What a policy needs beyond a mask is an optional interface: [Selector] looks at the query, [Blockwise] computes in blocks. Find
// them with [As], which looks through wrappers. [Fit] says whether a policy can work with a model's heads.
//
// [Attend] runs one query row through any policy. Keys are visited in ascending absolute position whatever the store.
//
// Start at [Parse].
package attention
