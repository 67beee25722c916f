# make lists the targets. Everything runs on a laptop; .ci/run is the same steps in one go.

FUZZTIME ?= 20s

.PHONY: help check format vet arch test race arm64 drift generate fuzz long bench lint

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

check: format vet arch test race drift fuzz ## everything a change must pass (FUZZTIME=20s per target)

format: ## gofmt, go fix and go.mod have nothing to change
	@test -z "$$(gofmt -l . | grep -v /testdata/)" || { gofmt -l .; exit 1; }
	go fix -diff ./...
	go mod tidy -diff

vet: ## build and vet for every platform, with and without assembly
	.ci/cross

arch: ## who may import whom, and the rules of style a machine can check
	go test ./internal/archtest

test: ## all tests; with the conformance data beside the checkout or in ANELAB_DATA, those too
	go test ./...

race: ## the race detector on everything that shares work
	.ci/race

arm64: ## the pinned numerics on arm64, under qemu where needed
	.ci/arm64

drift: ## generated files equal what their generators make
	.ci/drift

generate: ## regenerate what go:generate makes
	go generate ./...

fuzz: ## every fuzz target for FUZZTIME
	.ci/fuzz $(FUZZTIME)

long: ## the conformance runs that take minutes
	ANELAB_LONG=1 go test ./... -run Long -timeout 60m -v

bench: ## benchmarks; compare two runs with benchstat
	go test -run '^$$' -bench . ./...

lint: ## staticcheck
	go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
