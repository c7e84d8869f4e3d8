#!/usr/bin/env python3
"""Linnet beside llama.cpp on one model file and this machine: prefill, decode, start and served streams, in turn, medians and ratios.

Usage: compare.py LINNET LLAMA_BIN_DIR MODEL.gguf [--rounds N] [--threads N] [--serve-load PROGRAM] [--only-served]   (standard library only)
Each round runs both once, one after the other, so that what else the machine does meets both. Served rows need bench/serve_load."""
import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import time
import urllib.request

PROMPTS = (512, 4096)
DECODE_TOKENS = 128


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def linnet_speeds(binary, model, threads):
    command = [binary, "bench", model, "--json", "--repeats", "1", "--threads", str(threads), "--contexts", "0", "--decode-tokens", str(DECODE_TOKENS)]
    result = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    speeds = {f"prefill {entry['tokens']}": entry["tok_s"] for entry in result["prefill"]}
    limits = {f"prefill {entry['tokens']}": entry["limit_tok_s"] for entry in result["prefill"]}
    speeds["decode"] = result["decode"][0]["tok_s"]
    limits["decode"] = result["decode"][0]["limit_tok_s"]
    return speeds, limits


def llama_speeds(folder, model, threads):
    command = [os.path.join(folder, "llama-bench"), "-m", model, "-t", str(threads), "-p", ",".join(map(str, PROMPTS)), "-n", str(DECODE_TOKENS), "-r", "1", "-o", "json"]
    result = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    return {f"prefill {test['n_prompt']}" if test["n_prompt"] else "decode": test["avg_ts"] for test in result}


def wait_until_ready(process, name, port):
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1) as reply:
                if reply.status == 200:
                    return
        except OSError:
            pass
        if process.poll() is not None:
            raise SystemExit(f"{name} ended before it was ready")
        time.sleep(0.005)


@contextlib.contextmanager
def served(command):
    """A server's port and the seconds from starting its process to its first 200 at /health."""
    port = free_port()
    start = time.monotonic()
    process = subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until_ready(process, command[0], port)
        yield port, time.monotonic() - start
    finally:
        process.terminate()
        process.wait()


def loads(program, port):
    """What clients see of a server, by row."""
    def load(*flags):
        return json.loads(subprocess.run([program, str(port), *flags], capture_output=True, check=True, text=True).stdout)

    load("--streams", "1", "--tokens", "16")  # warm-up
    one, eight, long = load("--streams", "1"), load("--streams", "8"), load("--long-prompt", "6000")
    return {
        "1 stream tok/s": one["tok_s"],
        "8 streams tok/s": eight["tok_s"],
        "first token ms": one["ttft_ms"]["p50"],
        "worst gap ms": long["other_gap_ms"]["max"],
        "6k prompt ms": long["ttft_ms"],
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("linnet")
    parser.add_argument("llama")
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--serve-load", help="bench/serve_load: adds the served rows")
    parser.add_argument("--only-served", action="store_true")
    arguments = parser.parse_args()
    threads = str(arguments.threads)
    our_server = [arguments.linnet, "serve", arguments.model, "--threads", threads]
    their_server = [os.path.join(arguments.llama, "llama-server"), "-m", arguments.model, "-t", threads, "-np", "8", "-c", "65536"]
    ours, theirs, limits = {}, {}, {}

    def note(into, values):
        for name, value in values.items():
            into.setdefault(name, []).append(value)

    for _ in range(arguments.rounds):
        if not arguments.only_served:
            speeds, round_limits = linnet_speeds(arguments.linnet, arguments.model, arguments.threads)
            note(ours, speeds)
            note(limits, round_limits)
            note(theirs, llama_speeds(arguments.llama, arguments.model, arguments.threads))
        for into, command in ((ours, our_server), (theirs, their_server)):
            with served(command) as (port, seconds):
                note(into, {"start s": seconds})
                if arguments.serve_load:
                    note(into, loads(arguments.serve_load, port))
    print(f"{'median of ' + str(arguments.rounds):16} {'linnet':>10} {'llama.cpp':>10} {'ratio':>7} {'of limit':>9}")
    for name, values in ours.items():
        pairs = [a / b for a, b in zip(values, theirs[name])]
        limit = f"{100 * statistics.median(a / b for a, b in zip(values, limits[name])):8.0f}%" if name in limits else ""
        print(f"{name:16} {statistics.median(values):10.2f} {statistics.median(theirs[name]):10.2f} {statistics.median(pairs):7.2f} {limit:>9}")


main()
