// Package shareddata answers, for tests only: where is the conformance data that is too large for testdata/?
//
// The data folder is $ANELAB_DATA, or the folder "shared" beside the checkout. A test that needs it skips, saying so, where it
// is absent; what the project claims is proven by testdata/ without it. Where the data is present, tests take every case they
// find and fail on finding none, so an added file is a tested file and a moved folder is not silence.
//
// Start at [Cases].
package shareddata
