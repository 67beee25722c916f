// Package ledger answers: which of the tricks that people propose pays on the Neural Engine, and how do we know?
//
// One entry per technique: what its authors claim, the rows of effects.csv that measured it, what the cost model makes of it,
// and a verdict. The verdict says on what ground the entry stands:
//
//	priced       a term of the cost model explains it; the forecast is a difference of two plans
//	reference    the reference implementation runs it; what it saves at most is priced, what it does to tokens can be seen there
//	rule         measured once or twice and not explained: a named empirical rule
//	unmeasured   nobody ran it on a device and no term covers it; the forecast, if any, is a bound
//
// A claim is somebody else's. A forecast is ours, with its range.
//
// Start at [Entries]; [Entry.Forecast] needs a [Bench].
package ledger
