// Package attention answers: which keys does a query see, and what must be remembered for that?
//
// A [Policy] is a small value that prints itself. It names the query heads that share a visibility rule, the absolute positions a
// query sees, and the rows a store must keep. The layer code, the stores, the planner and the cost model ask the policy and
// never a layer's kind, so a new mask-like policy is one file here.
//
//	policy        a query at position p sees        keeps
//	full          0 … p                             everything
//	sliding:W     p−W+1 … p, W positions with p     the last W rows
//
// [Attend] runs one query row through any policy. Keys are visited in ascending absolute position whatever the store.
//
// Start at [Parse].
package attention
