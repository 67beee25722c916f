"""Times coremltools' palettizer and this project's on the same weights, one after the other; called by bench_palettize.sh.

    python bench_palettize.py OUR_PROGRAM FOLDER [ROUNDS]

Both get 4 bits in groups of 32 rows, the weights already in memory, two cores. Ours starts as a new process each time and is timed
inside it, so building its tables of half precision numbers counts; coremltools' pool of two workers is started beforehand.
"""
import hashlib
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

import coremltools
import numpy as np
from coremltools.optimize import _utils
from coremltools.optimize.coreml._quantization_passes import palettize_weights
from safetensors import numpy as st

ROWS = 256  # eight groups
# Linear weights of E2B by number of input columns, all 35 layers and the projections beside them, without the output head.
HIDDEN, LAYERS, OWN, FULL, PLE = 1536, 35, 15, 7, 256
WEIGHTS = {
    1536: HIDDEN * (8 * 256 * (LAYERS - FULL) + 8 * 512 * FULL                    # queries
                    + 2 * (256 * 12 + 512 * 3)                                    # keys and values of the layers that have their own
                    + 2 * 6144 * OWN + 2 * 12288 * (LAYERS - OWN)                 # gate and up
                    + PLE * LAYERS + PLE * LAYERS),                               # gate of the per-layer input, its projection
    2048: 2048 * HIDDEN * (LAYERS - FULL),                                        # attention output, sliding layers
    4096: 4096 * HIDDEN * FULL,                                                   # attention output, full layers
    6144: 6144 * HIDDEN * OWN,                                                    # down
    12288: 12288 * HIDDEN * (LAYERS - OWN),
    256: PLE * HIDDEN * LAYERS,                                                   # per_layer_projection: scikit-learn's path
}


def weights(columns):
    """Normal numbers rounded to bfloat16, as a converter sees them: in fp16."""
    x = (np.random.default_rng(columns).standard_normal((ROWS, columns)) * 0.02).astype(np.float32).view(np.uint32)
    return ((x + 0x7FFF + ((x >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(np.float16)


def theirs(w):
    start = time.perf_counter()
    r = palettize_weights.blockwise_compress(w, "KMEANS", 4, [32, 0], num_kmeans_workers=2)
    taken = time.perf_counter() - start
    packed = _utils.pack_elements_into_bits(r.indices.astype(np.uint8), 4)
    return taken, hashlib.sha256(r.lut.tobytes() + packed.tobytes()).hexdigest()


def ours(program, file):
    taken, digest = subprocess.run([program, file], check=True, capture_output=True, text=True).stdout.split()
    return float(taken), digest


def cpu():
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":")[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def main(program, folder, rounds):
    print(f"{cpu()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start; coremltools {coremltools.__version__}, {rounds} rounds")
    theirs(weights(256))  # starts the pool
    print(f"{'columns':>8} {'theirs':>10} {'ours':>10} {'ratio':>7} {'range':>13}  bits       (ns per weight, medians)")
    total = {"theirs": 0.0, "ours": 0.0}
    for columns, count in WEIGHTS.items():
        w = weights(columns)
        file = str(pathlib.Path(folder) / f"{columns}.safetensors")
        st.save_file({"weight": w}, file)
        a, b, same = [], [], True
        for _ in range(rounds):
            (t, x), (u, y) = theirs(w), ours(program, file)
            a.append(t / w.size * 1e9)
            b.append(u / w.size * 1e9)
            same = same and x == y
        ratios = [x / y for x, y in zip(a, b)]
        bits = "identical" if same else "different" if 32 * columns >= 10_000 else "(sklearn)"
        print(f"{columns:>8} {statistics.median(a):>10.1f} {statistics.median(b):>10.1f} {statistics.median(a) / statistics.median(b):>7.1f} "
              f"{min(ratios):>5.1f} - {max(ratios):>5.1f}  {bits}")
        total["theirs"] += statistics.median(a) * count / 1e9
        total["ours"] += statistics.median(b) * count / 1e9
    print(f"all {sum(WEIGHTS.values()) / 1e9:.2f} G weights of E2B's linears: theirs {total['theirs']:.0f} s, ours {total['ours']:.1f} s, "
          f"ratio {total['theirs'] / total['ours']:.1f}; load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 7)
