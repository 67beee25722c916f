#!/usr/bin/env bash
# Times simulate against llama.cpp v0.5.0 on the same random E2B weights, the two taking turns, and prints ratios with ranges.
#
#   scripts/bench_peer.sh [WORKDIR]        WORKDIR keeps the peer's build and the two models (about 12 GB) for the next time
#
#   ROUNDS=5 THREADS=2 DEPTHS="0 2048 8192" PROMPT=512 GENERATE=32 PEER_FLAGS="-DGGML_NATIVE=ON" VOCAB=…/ggml-vocab-gemma-4.gguf
#
# Without AVX-512 on either side, the peer in a WORKDIR of its own:
#   ANELAB_KERNEL=avx2 PEER_FLAGS="-DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON" scripts/bench_peer.sh DIR
#
# The peer is fetched as an npm package that carries a git bundle of its source. Nothing of it enters this repository.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
work=${1:-$(mktemp -d)}
rounds=${ROUNDS:-5} threads=${THREADS:-$(nproc)} prompt=${PROMPT:-512} generate=${GENERATE:-32} depths=${DEPTHS:-0 2048 8192}
mkdir -p "$work"

build_peer() {
    cd "$work"
    [ -d llama.cpp ] || {
        npm install --silent node-llama-cpp@3.22.1 --ignore-scripts
        git clone -q node_modules/node-llama-cpp/llama/gitRelease.bundle llama.cpp
    }
    # shellcheck disable=SC2086
    cmake -S llama.cpp -B peer -DCMAKE_BUILD_TYPE=Release ${PEER_FLAGS:--DGGML_NATIVE=ON} -DGGML_OPENMP=OFF -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF \
        -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_SERVER=OFF >cmake.log
    cmake --build peer --target llama-bench -j "$(nproc)" >build.log 2>&1
}
peer=${PEER:-$work/peer/bin/llama-bench}
[ -x "$peer" ] || build_peer
vocab=${VOCAB:-$work/llama.cpp/models/ggml-vocab-gemma-4.gguf}

cd "$here"
go build -o "$work/simulate" ./cmd/simulate
[ -f "$work/e2b.gguf" ] && [ -f "$work/e2b.anelab" ] ||
    go run ./scripts/peerweights -vocab "$vocab" -gguf "$work/e2b.gguf" -packed "$work/e2b.anelab"

# One window of each, in tokens per second: what → prompt, generate, depth, mode.
ours() { "$work/simulate" bench "$work/e2b.anelab" --threads "$threads" --mode "${4:-f32}" -p "$1" -n "$2" -d "$3" -r 1 --format csv | tail -1 | cut -d, -f5; }
theirs() { "$peer" -m "$work/e2b.gguf" -t "$threads" -p "$1" -n "$2" -d "$3" -r 1 -o csv 2>/dev/null | tail -1 | awk -F'","' '{print $(NF-1)}'; }

median() { tr ' ' '\n' | grep . | sort -g | awk '{v[NR]=$1} END {print v[int((NR+1)/2)]}'; }
compare() { # name, prompt, generate, depth, mode
    local us="" them="" ratios="" a b
    for _ in $(seq "$rounds"); do
        a=$(ours "$2" "$3" "$4" "${5:-f32}") b=$(theirs "$2" "$3" "$4")
        us+=" $a" them+=" $b" ratios+=" $(awk -v a="$a" -v b="$b" 'BEGIN {printf "%.3f", a/b}')"
    done
    printf '%-16s ours %6.2f  peer %6.2f tok/s   ratio %s [%s – %s]\n' "$1" "$(median <<<"$us")" "$(median <<<"$them")" "$(median <<<"$ratios")" \
        "$(tr ' ' '\n' <<<"$ratios" | grep . | sort -g | head -1)" "$(tr ' ' '\n' <<<"$ratios" | sort -g | tail -1)"
}

printf 'machine: %s, %s threads, load %s, %s\n' "$(sed -n 's/^model name\t*: //p' /proc/cpuinfo | head -1)" "$threads" "$(cut -d' ' -f1 /proc/loadavg)" "$(date -u +%F)"
printf 'kernels: %s; peer: llama.cpp v0.5.0, Q4_0; %s rounds, taking turns\n' "${ANELAB_KERNEL:-best}" "$rounds"
for d in $depths; do compare "tg$generate @ d$d" 0 "$generate" "$d"; done
[ "$prompt" = 0 ] || compare "pp$prompt" "$prompt" 0 0
[ -z "${ANE:-}" ] || compare "tg$generate ane" 0 "$generate" 0 ane
