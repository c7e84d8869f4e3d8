#!/usr/bin/env python3
"""Writes tests/data/weights/dequantize.gguf: random blocks of every weight format, and what they mean in float32.

The numbers come from the Python package `gguf`, which is the format's own reference.
For each format there are two tensors: "<name>", the blocks, and "<name>.expected", F32.
Run: python3 -m venv v && v/bin/pip install gguf==0.19.0 numpy==2.4.6 && v/bin/python tools/make_gguf_goldens.py
"""
import pathlib

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

ROWS, COLS = 4, 256
OUT = pathlib.Path(__file__).resolve().parent.parent / "tests/data/weights/dequantize.gguf"
# Scales that random bytes would rarely hit: zeros, subnormals, the largest numbers, infinities, NaN.
HALVES = np.array([0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E01], dtype=np.uint16)
BFLOATS = np.array([0x0000, 0x8000, 0x0001, 0x807F, 0x0080, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC1], dtype=np.uint16)
# Where a block's half-precision numbers lie, in bytes.
SCALES = {
    Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q8_0: [0],
    Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208],
}


def plain(kind: Type, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    if kind == Type.F32:
        raw = rng.standard_normal((ROWS, COLS), dtype=np.float32)
        return raw, raw
    raw = rng.integers(0, 1 << 16, (ROWS, COLS), dtype=np.uint16)
    special = HALVES if kind == Type.F16 else BFLOATS
    raw[0, : len(special)] = special
    if kind == Type.F16:
        return raw.view(np.float16), raw.view(np.float16).astype(np.float32)
    return raw.view(np.uint8), gguf.dequantize(raw.view(np.uint8), kind)


def blocks(kind: Type, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    raw = rng.integers(0, 256, (ROWS * COLS // elements, size), dtype=np.uint8)
    for place in SCALES[kind]:
        raw[:, place : place + 2] = rng.normal(0, 0.05, len(raw)).astype(np.float16).reshape(-1, 1).view(np.uint8)
    special = rng.permutation(HALVES)[: len(raw) // 2]  # half of the blocks stay ordinary
    for place in SCALES[kind]:
        raw[: len(special), place : place + 2] = rng.permutation(special).reshape(-1, 1).view(np.uint8)
    raw = raw.reshape(ROWS, -1)
    return raw, gguf.dequantize(raw, kind)


def main() -> None:
    np.seterr(all="ignore")
    rng = np.random.default_rng(7)
    writer = gguf.GGUFWriter(OUT, "none")
    kinds = [Type.F32, Type.F16, Type.BF16, *SCALES]
    for kind in kinds:
        raw, expected = plain(kind, rng) if kind not in SCALES else blocks(kind, rng)
        writer.add_tensor(kind.name, raw, raw_dtype=kind)
        writer.add_tensor(f"{kind.name}.expected", np.ascontiguousarray(expected, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
