// Package timing answers: how fast does this machine run the model, and how far is that from what its memory allows?
//
// Tests have llama-bench's shape: pp512 is a prompt of 512 tokens into an empty context, tg128 @ d2048 is 128 tokens one by one after
// 2048 others. A test runs several times; median and range are reported, never a mean, because a shared machine only ever makes a run
// slower.
//
// Start at [Run].
package timing
