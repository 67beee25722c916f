#!/usr/bin/env bash
# Compares the speed of quant.Palettize with coremltools' palettize_weights (two workers) on weights of E2B's shapes: ns per
# weight of both, their ratio with its range, whether the bits agree, and an estimate for all linears.
#     scripts/bench_palettize.sh [ROUNDS]
# Needs python3 with venv and the network for pip; nothing stays behind. PYTHON names another interpreter, which must then
# have the packages already if it is not to be installed into: set PYTHON_READY=1.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python=${PYTHON:-python3}
if [ -z "${PYTHON_READY:-}" ]; then
    "$python" -m venv "$folder/venv"
    python=$folder/venv/bin/python
    "$python" -m pip install --quiet --disable-pip-version-check 'coremltools==9.0' 'numpy<2.4' 'scikit-learn==1.9.1' safetensors
fi
go build -o "$folder/palettize" scripts/bench_palettize.go
"$python" scripts/bench_palettize.py "$folder/palettize" "$folder" "${1:-7}" 2> >(grep -v -e '^Failed to load _ML' -e 'not supported' -e 'not been tested' >&2)
