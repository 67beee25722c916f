"""Palettes, integers and pruned weights as coremltools makes them, for the tests of package quant.

    pip install coremltools==9.0 'numpy<2.4' scikit-learn==1.9.1 safetensors
    python make_palettes.py OUT

NAME.safetensors holds "weight" and for every configuration KEY of index.json its results: KEY/lut, KEY/indices (a byte each),
KEY/scale; or KEY/data, KEY/scale, KEY/offset, KEY/dense; or KEY/mask, KEY/nonzero. The functions called are those of the passes
behind coremltools.optimize.coreml: no model is needed around a weight.
"""
import json
import pathlib
import sys

import coremltools
import numpy as np
import sklearn
from coremltools.converters.mil.mil import types
from coremltools.optimize import _utils
from coremltools.optimize.coreml._quantization_passes import linear_quantize_weights, palettize_weights, prune_weights
from safetensors.numpy import save_file

rng = np.random.default_rng(107)


def bf16(x):
    """Round to the nearest bfloat16."""
    u = x.astype(np.float32).view(np.uint32)
    return ((u + 0x7FFF + ((u >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def palette(w, c):
    axis, group, n = c.get("channel_axis", 0), c.get("group_size", 0), c.get("nbits")
    sizes = [0, 0]
    sizes[axis] = group
    scale = None
    if c.get("enable_per_channel_scale"):
        scale = np.max(np.abs(w), axis=axis, keepdims=True)
        scale[scale == 0] = 1
        w = w / scale
    r = palettize_weights.blockwise_compress(w, c["mode"].upper(), n, sizes, None, c.get("cluster_dim", 1), axis)
    dense = _utils.lut_to_dense(r.indices, r.lut, r.vector_axis)
    lut, out = r.lut, {"indices": r.indices.astype(np.uint8)}
    if scale is not None:
        lut = np.repeat(lut, w.shape[1], axis=1)
        out["scale"] = scale[..., None, None]
        dense = dense * scale
        w = w * scale
    out["lut"] = lut
    elements = w.size if not group else w.size // (w.shape[axis] // group)
    exact = c["mode"] == "kmeans" and w.dtype == np.float16 and c.get("cluster_dim", 1) == 1 and elements >= 10_000
    path = c["mode"] if c["mode"] != "kmeans" else "kmeans1d" if exact else "sklearn"
    return out, {"index_bits": int(np.log2(lut.shape[-2])), "path": path, "dense": dense}


def integers(w, c):
    dtype = types.string_to_builtin(c["dtype"])
    sizes = {"per_tensor": [0, 0], "per_channel": [1, 0], "per_block": [1, c.get("block_size", 0)]}[c["granularity"]]
    r = linear_quantize_weights.blockwise_compress_by_dtype(w, dtype, c["mode"].upper(), sizes)
    as_bytes = np.uint8 if c["dtype"].startswith("u") else np.int8
    out = {"data": r.data.astype(as_bytes), "scale": r.scale, "dense": linear_quantize_weights.decompress(r)}
    if r.offset is not None:
        out["offset"] = r.offset.astype(as_bytes)
    return out


def pruned(w, key):
    if key == "prune_threshold":
        r = prune_weights.compress_by_threshold(w, 0.05, 0)
    elif key == "prune_sparsity50":
        r = prune_weights.compress_by_magnitude(w, 0.5)
    else:
        r = prune_weights.compress_by_nm_sparsity(w, (2, 4), 1)
    mask = np.unpackbits(r.mask, count=w.size, bitorder="little").reshape(w.shape)
    return {"mask": mask, "nonzero": r.nonzero_data}


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    index = {"_versions": {"coremltools": coremltools.__version__, "numpy": np.__version__, "scikit-learn": sklearn.__version__}, "_linear": {}}
    group = lambda n, **more: {"granularity": "per_grouped_channel", "group_size": n, **more}
    tensor = {"granularity": "per_tensor"}
    kmeans = lambda n, **more: {"mode": "kmeans", "nbits": n, **more}
    gauss = bf16(rng.standard_normal((32, 320)) * 0.04).astype(np.float16)
    signs = rng.choice(np.array([-2, -0.5, -0.0, 0.0, 1, 3], np.float32), (24, 64))
    palettes = {
        "gauss_32x320_bf16": (gauss, {
            "kmeans_n4_g32_axis0": kmeans(4, **group(32)), "kmeans_n3_tensor": kmeans(3, **tensor), "kmeans_n8_tensor": kmeans(8, **tensor),
            "kmeans_n4_g32_axis0_scaled": kmeans(4, enable_per_channel_scale=True, **group(32)),
            "kmeans_n4_g8_axis1": kmeans(4, channel_axis=1, **group(8)), "kmeans_n4_g16_axis0_vec2": kmeans(4, cluster_dim=2, **group(16)),
            "uniform_n4_g8_axis0": {"mode": "uniform", "nbits": 4, **group(8)}, "uniform_n6_tensor": {"mode": "uniform", "nbits": 6, **tensor}}),
        "signed_zeros_24x64_f16": (signs.astype(np.float16), {
            "unique_tensor": {"mode": "unique", **tensor}, "unique_g8_axis0": {"mode": "unique", **group(8)},
            "kmeans_n1_tensor": kmeans(1, **tensor), "uniform_n2_tensor": {"mode": "uniform", "nbits": 2, **tensor}}),
        "gauss_24x64_f32": (rng.standard_normal((24, 64)).astype(np.float32), {
            "kmeans_n2_tensor": kmeans(2, **tensor), "kmeans_n6_g12_axis0": kmeans(6, **group(12)),
            "kmeans_n2_g8_axis1": kmeans(2, channel_axis=1, **group(8)), "uniform_n8_tensor": {"mode": "uniform", "nbits": 8, **tensor}}),
    }
    for name, (w, configs) in palettes.items():
        parts, index[name] = {"weight": w}, {}
        for key, c in configs.items():
            out, facts = palette(w.copy(), c)
            error = w.astype(np.float64) - facts.pop("dense").astype(np.float64)
            index[name][key] = {"config": c, "sse": float(f"{np.sum(error * error):.9g}"), **facts}
            parts.update({f"{key}/{k}": v for k, v in out.items()})
        save_file({k: np.ascontiguousarray(v) for k, v in parts.items()}, folder / f"{name}.safetensors")
    for name, w in {"skewed_12x64_f16": (rng.standard_normal((12, 64)) * 0.3 + 0.2).astype(np.float16),
                    "gauss_12x64_f32": rng.standard_normal((12, 64)).astype(np.float32)}.items():
        parts, index["_linear"][name] = {"weight": w}, {}
        for dtype in ("int8", "uint4"):
            for mode in ("linear", "linear_symmetric"):
                for where in ({"granularity": "per_tensor"}, {"granularity": "per_channel"}, {"granularity": "per_block", "block_size": 16}):
                    key = f"{dtype}_{mode}_{where['granularity']}"
                    index["_linear"][name][key] = {"config": {"dtype": dtype, "mode": mode, **where}}
                    parts.update({f"{key}/{k}": v for k, v in integers(w, index["_linear"][name][key]["config"]).items()})
        for key in ("prune_threshold", "prune_sparsity50", "prune_2of4"):
            out = pruned(w, key)
            index["_linear"][name][key] = {"kept": int(out["mask"].sum())}
            parts.update({f"{key}/{k}": v for k, v in out.items()})
        save_file({k: np.ascontiguousarray(v) for k, v in parts.items()}, folder / f"linear_{name}.safetensors")
    (folder / "index.json").write_text(json.dumps(index, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
