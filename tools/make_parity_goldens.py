#!/usr/bin/env python3
"""Writes tests/parity/goldens: small random llama folders, and the logits that mlx-lm computes from them on a CPU.

`python3 tools/make_parity_goldens.py [DEMO.gguf]` makes an environment of its own in build/parity-venv (mlx-lm and the MLX of
tools/requirements.txt), and runs itself in it. Equal versions give equal files.

<case>/                  config.json and model.safetensors, as mlx-lm reads them
<case>/logits.f32        float32, little-endian: prefill [12, V], decode [4, V], chunked prefill [12, V]
cases.txt                one line a case: name, prompt's chunks, prompt ids, decoded ids
ring.txt                 rotating caches: "ring SIZE", "trim TOKENS", "feed TOKENS MASK CONTENT TRIMMABLE"
made_on.txt              what the last bits may depend on: MLX's version, architecture, C library
smollm2.txt              of the demo model: ids, CRC-32 of each module's arrays and of the five rows of logits of 12 + 4 tokens
"""
import itertools
import json
import os
import pathlib
import platform
import subprocess
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "tests/parity/goldens"
VENV = ROOT / "build/parity-venv"
MLX_LM = "mlx-lm==0.32.2"
PINNED = [*(line for line in (ROOT / "tools/requirements.txt").read_text().splitlines() if line.startswith("mlx")), MLX_LM,
          "numpy==2.4.6", "gguf==0.19.0"]


def reexec_in_venv() -> None:
    python = VENV / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PINNED], check=True)
    os.execv(python, [str(python), *sys.argv])


if pathlib.Path(sys.prefix) != VENV:
    reexec_in_venv()

import mlx.core as mx  # noqa: E402
import mlx.nn as nn  # noqa: E402
import numpy as np  # noqa: E402
from mlx.utils import tree_flatten  # noqa: E402
from mlx_lm.models.cache import RotatingKVCache, make_prompt_cache  # noqa: E402
from mlx_lm.models.llama import Model, ModelArgs  # noqa: E402
from mlx_lm.utils import load_model  # noqa: E402

mx.set_default_device(mx.cpu)

PROMPT, DECODE, CHUNKS = 12, 4, [5, 1, 6]
BASE = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 32, "num_hidden_layers": 2,
    "intermediate_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "rms_norm_eps": 1e-5,
    "vocab_size": 64, "max_position_embeddings": 512, "rope_theta": 10000.0, "tie_word_embeddings": True,
}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 256}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128, "beta_fast": 32, "beta_slow": 1}
LONGROPE = {"rope_type": "longrope", "original_max_position_embeddings": 128, "short_factor": [1.0] * 4,
            "long_factor": [1.0, 1.5, 3.0, 8.0]}
ONE_LAYER = {"num_hidden_layers": 1}  # in float32, where the last bits of a frequency show
# name: (type, bits or None, group, changes of the config)
CASES = {
    "bf16_tied": (mx.bfloat16, None, 0, {}),
    "f16_untied": (mx.float16, None, 0, {"tie_word_embeddings": False}),
    "f32_one_kv_head": (mx.float32, None, 0, {"num_key_value_heads": 1, "head_dim": 16}),
    "bf16_no_groups": (mx.bfloat16, None, 0, {"num_key_value_heads": 4}),
    "bf16_biases": (mx.bfloat16, None, 0, {"attention_bias": True, "mlp_bias": True}),
    "q4_bf16": (mx.bfloat16, 4, 32, {}),
    "q4_g64_f16_untied": (mx.float16, 4, 64, {"tie_word_embeddings": False, "hidden_size": 64, "intermediate_size": 64, "head_dim": 16}),
    "q8_bf16": (mx.bfloat16, 8, 32, {"intermediate_size": 96}),
    "q8_biases": (mx.bfloat16, 8, 32, {"attention_bias": True, "mlp_bias": True}),
    "rope_interleaved": (mx.float32, None, 0, {**ONE_LAYER, "rope_traditional": True}),
    "rope_linear": (mx.float32, None, 0, {**ONE_LAYER, "rope_scaling": {"rope_type": "linear", "factor": 3.0}}),
    "rope_llama3": (mx.float32, None, 0, {**ONE_LAYER, "rope_scaling": LLAMA3, "rope_theta": 500000.0}),
    "rope_yarn": (mx.float32, None, 0, {**ONE_LAYER, "rope_scaling": YARN}),
    "rope_yarn_mscale": (mx.float32, None, 0, {**ONE_LAYER, "rope_scaling": {**YARN, "mscale": 0.75, "mscale_all_dim": 0.5}}),
    "rope_longrope": (mx.float32, None, 0, {**ONE_LAYER, "rope_scaling": LONGROPE}),
}


def random_folder(folder: pathlib.Path, seed: int, dtype: mx.Dtype, quantization: dict | None, config: dict) -> None:
    rng = np.random.default_rng(seed)
    model = Model(ModelArgs.from_dict(config))
    weights = []
    for name, value in sorted(tree_flatten(model.parameters())):
        size = value.shape[-1]
        numbers = 1 + 0.1 * rng.standard_normal(value.shape) if "norm" in name else rng.standard_normal(value.shape) * size**-0.5 * 2
        weights.append((name, mx.array(numbers.astype(np.float32)).astype(dtype)))
    model.load_weights(weights)
    if quantization:
        nn.quantize(model, **quantization)
        config = {**config, "quantization": quantization}
    folder.mkdir(parents=True, exist_ok=True)
    mx.save_safetensors(str(folder / "model.safetensors"), dict(tree_flatten(model.parameters())), metadata={"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(config, indent=1, sort_keys=True) + "\n")


def forward(model: Model, tokens: list[int], cache: list) -> np.ndarray:
    """Logits of all tokens, [tokens, V] in float32, which holds every narrower type."""
    logits = model(mx.array([tokens]), cache=cache)[0]
    mx.eval(logits, [c.state for c in cache])
    return np.array(logits.astype(mx.float32))


def run(model: Model, prompt: list[int], chunks: list[int]) -> tuple[list[np.ndarray], list[int]]:
    cache = make_prompt_cache(model)
    parts = [forward(model, prompt, cache)]
    decoded = []
    for _ in range(DECODE):
        decoded.append(int(parts[-1][-1].argmax()))
        parts.append(forward(model, decoded[-1:], cache))
    cache = make_prompt_cache(model)
    begins = itertools.accumulate(chunks, initial=0)
    parts += [forward(model, prompt[begin : begin + count], cache) for begin, count in zip(begins, chunks)]
    return parts, decoded


def tiny_cases() -> None:
    lines = []
    for seed, (name, (dtype, bits, group, changes)) in enumerate(CASES.items()):
        config = {**BASE, **changes}
        quantization = {"group_size": group, "bits": bits} if bits else None
        random_folder(OUT / name, seed, dtype, quantization, config)
        model, _ = load_model(OUT / name)
        prompt = np.random.default_rng(seed).integers(0, config["vocab_size"], PROMPT).tolist()
        parts, decoded = run(model, prompt, CHUNKS)
        np.concatenate(parts).astype("<f4").tofile(OUT / name / "logits.f32")
        lines.append(" ".join([name, *(",".join(map(str, ids)) for ids in (CHUNKS, prompt, decoded))]))
    (OUT / "cases.txt").write_text("\n".join(lines) + "\n")


def mask_text(mask) -> str:
    if mask is None or isinstance(mask, str):
        return mask or "all"
    return "/".join("".join(str(int(allowed)) for allowed in row) for row in mask.tolist())


def ring_case() -> None:
    """Keys that are their tokens' positions, through rings of 8."""
    lines = []
    for feeds in ([1] * 20, [5, 1, 1, 1, 1, 4, 1, 9, 1, 1], [12, 1, 1, 3, 1], [3, -2, 4, 1, -1, 2, 1, 1, 6, 1]):
        cache = RotatingKVCache(max_size=8)
        lines.append("ring 8")
        for count in feeds:
            if count < 0:
                assert cache.is_trimmable() and cache.trim(-count) == -count
                lines.append(f"trim {-count}")
                continue
            mask = mask_text(cache.make_mask(count))
            positions = mx.arange(cache.offset, cache.offset + count, dtype=mx.float32).reshape(1, 1, count, 1)
            keys, _ = cache.update_and_fetch(positions, positions)
            held = ",".join(str(int(position)) for position in keys.flatten().tolist())
            lines.append(f"feed {count} {mask} {held} {int(cache.is_trimmable())}")
    (OUT / "ring.txt").write_text("\n".join(lines) + "\n")


GGUF_NAMES = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
              "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
              "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}


def hugging_face_name(name: str) -> str:
    parts = name.removesuffix(".weight").split(".")
    if parts[0] == "blk":
        return f"model.layers.{parts[1]}.{GGUF_NAMES[parts[2]]}"
    return {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}[parts[0]]


def affine_arrays(kind: str, blocks: np.ndarray) -> tuple[dict[str, np.ndarray], int]:
    """Codes, scales and biases of rows of Q4_1 or Q8_0 blocks, and a code's bits."""
    rows = len(blocks)
    if kind == "Q8_0":
        blocks = blocks.reshape(rows, -1, 34)
        scales = blocks[..., :2].copy().view(np.float16)[..., 0].astype(np.float32)
        codes = (blocks[..., 2:].view(np.int8).astype(np.int16) + 128).astype(np.uint8)
        return {"weight": codes.reshape(rows, -1).view(np.uint32), "scales": scales, "biases": -128 * scales}, 8
    assert kind == "Q4_1", kind
    blocks = blocks.reshape(rows, -1, 20)
    numbers = blocks[..., :4].copy().view(np.float16).astype(np.float32)
    codes = np.concatenate([blocks[..., 4:] & 15, blocks[..., 4:] >> 4], axis=-1)
    packed = codes[..., 0::2] | (codes[..., 1::2] << 4)
    return {"weight": packed.reshape(rows, -1).view(np.uint32), "scales": numbers[..., 0].copy(), "biases": numbers[..., 1].copy()}, 4


def smollm2_folder(gguf_path: pathlib.Path, folder: pathlib.Path) -> dict[str, np.ndarray]:
    """The GGUF file's numbers, none of them rounded, as a folder for mlx-lm; returns its arrays."""
    import gguf

    reader = gguf.GGUFReader(gguf_path)

    def field(key: str):
        return reader.fields[f"llama.{key}"].contents()

    arrays: dict[str, np.ndarray] = {}
    quantization: dict = {"group_size": 32, "bits": 4}
    for tensor in reader.tensors:
        name, kind = hugging_face_name(tensor.name), tensor.tensor_type.name
        if kind == "F32":
            arrays[f"{name}.weight"] = np.array(tensor.data)
            continue
        parts, bits = affine_arrays(kind, np.array(tensor.data))
        arrays |= {f"{name}.{part}": np.ascontiguousarray(value) for part, value in parts.items()}
        if bits != 4:
            quantization[name] = {"group_size": 32, "bits": bits}
    config = {
        "model_type": "llama", "hidden_size": field("embedding_length"), "num_hidden_layers": field("block_count"),
        "intermediate_size": field("feed_forward_length"), "num_attention_heads": field("attention.head_count"),
        "num_key_value_heads": field("attention.head_count_kv"), "vocab_size": len(arrays["model.embed_tokens.weight"]),
        "rms_norm_eps": round(float(field("attention.layer_norm_rms_epsilon")), 12), "rope_theta": float(field("rope.freq_base")),
        "max_position_embeddings": field("context_length"), "rope_traditional": True,  # GGUF files pair neighbours
        "tie_word_embeddings": "lm_head.weight" not in arrays, "quantization": quantization,
    }
    folder.mkdir(parents=True, exist_ok=True)
    mx.save_safetensors(str(folder / "model.safetensors"), {name: mx.array(value) for name, value in arrays.items()})
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    return arrays


def smollm2_case(gguf_path: pathlib.Path) -> None:
    folder = VENV.parent / "parity-smollm2"
    arrays = smollm2_folder(gguf_path, folder)
    model, _ = load_model(folder)
    prompt = np.random.default_rng(1).integers(0, 40_000, PROMPT).tolist()
    parts, decoded = run(model, prompt, [])
    rows = [parts[0][-1], *(part[0] for part in parts[1:])]
    lines = [f"prompt {','.join(map(str, prompt))}", f"decoded {','.join(map(str, decoded))}"]
    for name in sorted(name.removesuffix(".weight") for name in arrays if name.endswith(".weight")):
        crc = 0
        for part in ("weight", "scales", "biases"):
            if f"{name}.{part}" in arrays:
                crc = zlib.crc32(arrays[f"{name}.{part}"].tobytes(), crc)
        lines.append(f"array {name} {crc:08x}")
    for row in rows:
        first = " ".join(value.hex() for value in map(float, row[:4]))
        lines.append(f"logits {zlib.crc32(np.ascontiguousarray(row, dtype='<f4').tobytes()):08x} {first}")
    (OUT / "smollm2.txt").write_text("\n".join(lines) + "\n")


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    made_on = f"mlx {mx.__version__}, {platform.machine()}, {' '.join(platform.libc_ver())}"
    (OUT / "made_on.txt").write_text(made_on + "\n")
    tiny_cases()
    ring_case()
    if len(sys.argv) > 1:
        smollm2_case(pathlib.Path(sys.argv[1]))


if __name__ == "__main__":
    main()
