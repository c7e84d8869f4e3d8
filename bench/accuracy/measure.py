#!/usr/bin/env python3
"""How far Linnet's logits are from float32 arithmetic, and how far roundings of activations are that others use.

Usage: measure.py STREAM_LOGITS MODEL.gguf [TEXT] [--mlx PROCESSES] [--llama-perplexity PROGRAM]

A forward pass of the llama architecture in numpy, in float32 throughout on the file's exact weights, is the reference. Beside it:
Linnet (STREAM_LOGITS is build/bench/bench/stream_logits), the same numpy pass with keys and values rounded to f16 or the input of
every matrix rounded to bf16 or to int8 in blocks of 32, Linnet's reference path (--mlx, as many processes at once: it takes a minute a window), and llama.cpp's perplexity on the same text. Prints, over all tokens of whole
windows: mean KL of the reference against each, how often the most likely token differs, how often where the reference's margin exceeds
1e-3 nats and the largest such margin, and perplexities.
Needs numpy and gguf, which tools/requirements-accuracy.txt pins.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

import gguf
import numpy as np

WINDOW = 512  # tokens; llama.cpp scores the second half of each, so perplexities here do too
TEXT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "us_founding_documents.txt")


class Llama:
    """The file's weights in float32, [out, in], and its numbers."""

    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        field = lambda key: reader.fields[key].contents()
        self.layers = field("llama.block_count")
        self.heads = field("llama.attention.head_count")
        self.kv_heads = field("llama.attention.head_count_kv")
        self.eps = field("llama.attention.layer_norm_rms_epsilon")
        self.theta = field("llama.rope.freq_base")
        self.weights = {
            t.name: np.ascontiguousarray(gguf.quants.dequantize(t.data, t.tensor_type), np.float32) for t in reader.tensors
        }
        self.head = self.weights.get("output.weight", self.weights["token_embd.weight"])
        self.dim = self.weights["blk.0.attn_q.weight"].shape[0] // self.heads


def keep(x):
    return x


def round_f16(x):
    return x.astype(np.float16).astype(np.float32)


def round_bf16(x):
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def round_int8(x):
    blocks = x.reshape(x.shape[0], -1, 32)
    scale = np.abs(blocks).max(-1, keepdims=True) / 127
    scale[scale == 0] = 1
    return (np.rint(blocks / scale) * scale).reshape(x.shape)


def rope(x, cos, sin):
    """Pairs are (2i, 2i + 1), as GGUF files order a head's rows. x: [tokens, heads, dim]."""
    out = np.empty_like(x)
    out[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
    out[..., 1::2] = x[..., 0::2] * sin + x[..., 1::2] * cos
    return out


def attend(q, k, v):
    """Causal attention of one window; q: [tokens, heads, dim], k and v: [tokens, kv_heads, dim]."""
    tokens, heads, dim = q.shape
    group = heads // k.shape[1]
    hidden = np.triu(np.full((tokens, tokens), -np.inf, np.float32), 1)
    out = np.empty_like(q)
    for head in range(heads):
        scores = q[:, head] @ k[:, head // group].T / np.float32(np.sqrt(dim)) + hidden
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        out[:, head] = weights / weights.sum(-1, keepdims=True) @ v[:, head // group]
    return out.reshape(tokens, heads * dim)


def logits(model, tokens, rounded=keep, cached=keep):
    """[tokens, vocabulary]; `rounded` is applied to the input of every matrix, `cached` to keys and values."""
    w, count = model.weights, len(tokens)
    angles = np.arange(count)[:, None] * model.theta ** (-np.arange(0, model.dim, 2) / model.dim)
    cos, sin = (f(angles).astype(np.float32)[:, None] for f in (np.cos, np.sin))
    norm = lambda x, weight: x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(model.eps)) * weight
    x = w["token_embd.weight"][tokens]
    for i in range(model.layers):
        at = f"blk.{i}."
        h = rounded(norm(x, w[at + "attn_norm.weight"]))
        q, k, v = ((h @ w[at + f"attn_{name}.weight"].T).reshape(count, -1, model.dim) for name in "qkv")
        x = x + rounded(attend(rope(q, cos, sin), cached(rope(k, cos, sin)), cached(v))) @ w[at + "attn_output.weight"].T
        h = rounded(norm(x, w[at + "ffn_norm.weight"]))
        gate = h @ w[at + "ffn_gate.weight"].T
        product = gate / (1 + np.exp(-gate)) * (h @ w[at + "ffn_up.weight"].T)
        x = x + rounded(product) @ w[at + "ffn_down.weight"].T
    return rounded(norm(x, w["output_norm.weight"])) @ model.head.T


def log_softmax(z):
    z = z.astype(np.float64)
    z -= z.max(-1, keepdims=True)
    return z - np.log(np.exp(z).sum(-1, keepdims=True))


class Tally:
    """What is summed up over windows for one arithmetic."""

    def __init__(self):
        self.kl, self.flips, self.clear_flips, self.tokens, self.nll, self.scored = 0.0, 0, 0, 0, 0.0, 0
        self.widest = 0.0

    def add(self, reference, other, tokens):
        best = reference.argmax(-1)
        top = np.partition(reference, -2, -1)[:, -2:]
        flipped = other.argmax(-1) != best
        self.kl += (np.exp(reference) * (reference - other)).sum()
        self.flips += flipped.sum()
        margin = top[:, 1] - top[:, 0]
        self.clear_flips += (flipped & (margin > 1e-3)).sum()
        self.widest = max(self.widest, margin[flipped].max(initial=0.0))
        self.tokens += len(tokens)
        scored = np.arange(WINDOW // 2, WINDOW - 1)
        self.nll -= other[scored, tokens[scored + 1]].sum()
        self.scored += len(scored)

    def row(self, name):
        return (f"| {name} | {self.kl / self.tokens:.2e} | {self.flips / self.tokens:.3%} | {self.clear_flips} | {self.widest:.1e} | "
                f"{np.exp(self.nll / self.scored):.4f} |")


class Stream:
    """The logits that stream_logits writes, window by window. With `parts`, as many processes at once, each into a file first."""

    def __init__(self, arguments, backend, parts=1):
        command = [arguments.stream_logits, backend, arguments.model, arguments.text, str(WINDOW)]
        if parts == 1:
            self.files = [subprocess.Popen(command, stdout=subprocess.PIPE).stdout]
        else:
            self.files = [tempfile.TemporaryFile() for _ in range(parts)]
            processes = [subprocess.Popen([*command, str(part), str(parts)], stdout=file) for part, file in enumerate(self.files)]
            for process, file in zip(processes, self.files):
                process.wait()
                file.seek(0)
        for file in self.files:
            self.count, self.vocabulary = self.read(file, 2, np.int32)
            self.tokens = self.read(file, self.count, np.int32)
        self.window = 0

    @staticmethod
    def read(file, count, kind):
        bytes_read = file.read(4 * count)
        if len(bytes_read) != 4 * count:
            sys.exit("stream_logits failed")
        return np.frombuffer(bytes_read, kind)

    def next(self):
        file = self.files[self.window % len(self.files)]
        self.window += 1
        return self.read(file, WINDOW * self.vocabulary, np.float32).reshape(WINDOW, self.vocabulary)


def llama_perplexity(program, model, text):
    done = subprocess.run([program, "-m", model, "-f", text, "-c", str(WINDOW), "-t", "2"], capture_output=True, text=True, check=True)
    return re.search(r"Final estimate: PPL = ([\d.]+)", done.stdout + done.stderr).group(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stream_logits")
    parser.add_argument("model")
    parser.add_argument("text", nargs="?", default=TEXT)
    parser.add_argument("--llama-perplexity", help="llama.cpp's program of that name")
    parser.add_argument("--mlx", type=int, default=0, metavar="PROCESSES", help="measure the reference path too")
    parser.add_argument("--linnet-only", action="store_true", help="leave the other roundings out")
    arguments = parser.parse_args()
    model = Llama(arguments.model)
    kinds = {} if arguments.linnet_only else {
        "f16 keys and values": {"cached": round_f16},
        "bf16 activations": {"rounded": round_bf16},
        "int8 activations, blocks of 32": {"rounded": round_int8},
    }
    streams = {"Linnet": Stream(arguments, "cpu")}
    if arguments.mlx:
        streams["Linnet, reference path"] = Stream(arguments, "mlx", arguments.mlx)
    tallies = {name: Tally() for name in ["float32", *streams, *kinds]}
    count, tokens = streams["Linnet"].count, streams["Linnet"].tokens
    for begin in range(0, count, WINDOW):
        window = tokens[begin:begin + WINDOW]
        reference = log_softmax(logits(model, window))
        tallies["float32"].add(reference, reference, window)
        for name, stream in streams.items():
            tallies[name].add(reference, log_softmax(stream.next()), window)
        for name, roundings in kinds.items():
            tallies[name].add(reference, log_softmax(logits(model, window, **roundings)), window)
        print(f"{begin + WINDOW} of {count} tokens", file=sys.stderr)
    print(f"{count} tokens in windows of {WINDOW}; perplexity over the second half of each\n")
    print("| arithmetic | mean KL | top-1 differs | of these with margin > 1e-3 | largest margin | perplexity |\n|---|---|---|---|---|---|")
    for name, tally in tallies.items():
        print(tally.row(name))
    if arguments.llama_perplexity:
        print(f"| llama.cpp | | | | | {llama_perplexity(arguments.llama_perplexity, arguments.model, arguments.text)} |")


if __name__ == "__main__":
    main()
