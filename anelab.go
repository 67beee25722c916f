// Package anelab carries the files that the simulate command works on when it is given nothing: published configurations,
// a tiny checkpoint with its goldens, a small trained model with questions to it, and the measurements that the cost model is fitted on. Provenance of every file:
// testdata/README.md.
//
// The libraries live in the packages below; start at the README.
package anelab

import "embed"

// Files holds testdata/configs, testdata/measured, the tiny checkpoint of testdata/golden, its vocabulary, and the recall miniature.
//
//go:embed testdata/configs testdata/measured testdata/tokenizer/tiny-e2b.json testdata/golden/tiny-e2b/bf16 testdata/golden/tiny-e2b/*.safetensors testdata/golden/tiny-e2b/*.json testdata/golden/formula testdata/recall
var Files embed.FS
