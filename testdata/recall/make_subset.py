#!/usr/bin/env python3
"""Cut the first sequences of the recall miniature's evaluation file and the logits of its 4-bit palettes.

Pinned versions: Python 3.11.7, numpy 2.4.6, safetensors 0.8.0.

    python make_subset.py RECALL_DIR eval.safetensors
"""
import sys

from safetensors.numpy import load_file, save_file

SEQUENCES = 32

source, target = sys.argv[1:]
out = {name: x[:SEQUENCES].copy() for name, x in load_file(source + "/eval.safetensors").items()}
logits = load_file(source + "/logits.safetensors")
for i in range(2):
    out[f"pal4_group32.seq{i}.at_query_pos"] = logits[f"pal4_group32.seq{i}.at_query_pos"]
save_file(out, target)
