#!/usr/bin/env bash
# Emits a checkpoint in every preset, as fp16 and in 4 bits, with decode, prefill_b8 and verify_qK, with caches in ports and in
# states, and has coremltools read every package: types inferred again, weights found, programs rebuilt.
#
#   ANELAB_DATA=../shared scripts/check_emitted.sh [CHECKPOINT [CONTEXT]]
#
# Wants Python 3.9 to 3.13. VENV names a virtual environment to use; without it one is made beside the outputs, and coremltools is
# installed there.
set -euo pipefail

cd "$(dirname "$0")/.."
checkpoint=${1:-testdata/golden/tiny-e2b/bf16}
context=${2:-24}
data=${ANELAB_DATA:-../shared}
checker=$data/tools/check_mlpackage.py
if [[ ! -f $checker ]]; then
	echo "check_emitted: no $checker: set ANELAB_DATA to the folder that holds tools/check_mlpackage.py" >&2
	exit 2
fi

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
if [[ -z ${VENV:-} ]]; then
	VENV=$out/venv
	python3 -m venv "$VENV"
	"$VENV/bin/pip" install --quiet -r "$data/tools/requirements.txt"
fi

go build -o "$out/simulate" ./cmd/simulate
emit() { # name, layout, further flags
	"$out/simulate" emit "$checkpoint" "$2" -o "$out/$1" --context "$context" --prefill 8 --only-chunks "${@:3}" >"$out/$1.txt" 2>"$out/$1.log" || { cat "$out/$1.log" >&2; exit 1; }
	tail -n 1 "$out/$1.txt"
}
for layout in @4way @3way @topo1 @2way; do
	for weights in f16 int4g16 int4g32; do
		emit "$weights$layout" "$layout" --weights "$weights" --verify 3
	done
	emit "whole$layout" "$layout" --weights int4g16 --verify 3 --verify-window whole
	emit "state$layout" "$layout" --weights int4g16 --verify 3 --state
done
packages=("$out"/*/*.mlpackage)
"$VENV/bin/python" "$checker" "${packages[@]}" >"$out/checks.txt" || { grep -v '^  ok' "$out/checks.txt"; exit 1; }
echo "${#packages[@]} packages, $(grep -c '^  ok' "$out/checks.txt") checks, $(grep -c '^  FAIL' "$out/checks.txt" || true) failed"
