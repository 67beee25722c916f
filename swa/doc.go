// Package swa answers: what does a layer remember, for how long, and who else reads it?
//
// A [Store] keeps the key and value rows of one layer that owns its KV. A forward call first stages the rows of its tokens,
// then every layer that reads this store (the owner and the layers that share it) attends to what is committed plus what is
// staged, and only when the whole call has succeeded are the rows committed. So a call that is cancelled half-way leaves
// nothing behind, a batch of any length sees exactly its window, and readers never depend on when a donor commits.
//
//	store      what it holds                          where position p lies
//	Ring       the last W rows                        slot p mod W
//	Linear     everything up to the context           slot p
//	Bank       the first S rows and the last R        row p of the sinks, else slot p mod R
//	Grouped    the newest exactly, older in codes     slot p mod (recent+group), else code p
//	Indexed    a store, and extremes of key blocks    as the store
//	Shift      a chunk's sliding cache port           slot p − (last − (W−1)), newest row at W−1
//	Sinks      a chunk's port with sinks (spec §7.4)  as Bank: slot p of the sinks, behind them as Shift
//	Masked     a chunk's full cache port              slot p
//
// A [View] hides the difference: Row(p) is the row of absolute position p. Every row carries its absolute position by
// construction; nothing is ever judged by slot number. A [Form] says in how few bits rows are kept; a view reads numbers.
//
// Window convention: W is the query itself and the W−1 positions before it. Ranges are half-open.
//
// Start at [New].
package swa
