#!/usr/bin/env bash
# What the owner of a Mac runs: compiles, loads and times Core ML packages, asks where their ops run, compares their outputs with
# recorded ones where they lie beside the package, and prints one JSON report (docs/schema/device_report.schema.json).
#
#   scripts/device_validate.sh                                       the sample packages of this repository
#   scripts/device_validate.sh OUT/*.mlpackage                       packages of your own
#   scripts/device_validate.sh -layout '0-7|8-24|25-34+head' OUT/chunk1.mlpackage OUT/chunk2_3way.mlpackage OUT/chunk3_3way.mlpackage >report.json
#   go run ./cmd/simulate calibrate report.json                      fits a device to such a report, here or elsewhere
#
# Flags: -units cpu|cpu+gpu|all|cpu+ane, -calls N, -function NAME, -surface, -device NAME, -model NAME, -experiment NAME.
# Needs macOS 13 with Go; states and models with several functions need macOS 15, placement macOS 14.4. No Xcode, no cgo.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

(cd "$here" && CGO_ENABLED=0 go build -tags coreml -o "$folder/devicereport" ./scripts/devicereport)
if [ $# -eq 0 ]; then
    set -- "$here"/testdata/coreml/ops/*.mlpackage
fi
"$folder/devicereport" "$@"
