// Package gemmatest makes small Gemma models with random weights for tests: any configuration, any seed, no files.
//
// Start at [New].
package gemmatest
