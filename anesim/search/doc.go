// Package search answers: which of all layouts is best, and how can anyone be sure of it?
//
// E2B can be cut in 2^34 ways. The price of a layout is a sum over its chunks plus a term for neighbours, so the best one is
// a shortest path:
//
//	node   (layer where the next chunk begins, did the chunk before export KV, chunks so far)
//	edge   one chunk: its call, and the first-import term if it imports right behind an exporter
//	        0 ──L0-7──► (8, no) ──L8-24──► (25, yes) ──L25-34+head──► end
//
// Chunks that the tool chain is known to refuse are edges that do not exist. [Best] returns the optimum with a [Proof]: for
// every node the least cost to the end. Whoever doubts it walks the edges once and sees that none undercuts them
// ([Proof.Verify]); no search needs to be trusted.
//
// Fronts are another matter: [Front] keeps the points that no other point beats in every respect.
//
// Times are seconds, sizes bytes; every objective is minimised.
//
// Start at [Best]; [Explore] makes the points of a front.
package search
