#!/usr/bin/env python3
"""Linnet beside llama.cpp on one model file and this machine: prefill, decode and start, in turn, medians and ratios.

Usage: compare.py LINNET LLAMA_BIN_DIR MODEL.gguf [--rounds N] [--threads N]   (standard library only)
Each round runs both once, one after the other, so that what else the machine does meets both."""
import argparse
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


def start_seconds(command, port):
    """From starting the process to its first 200 at /health."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1) as reply:
                    if reply.status == 200:
                        return time.monotonic() - start
            except OSError:
                pass
            if process.poll() is not None:
                raise SystemExit(f"{command[0]} ended before it was ready")
            time.sleep(0.005)
    finally:
        process.terminate()
        process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("linnet")
    parser.add_argument("llama")
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    ours, theirs, limits = {}, {}, {}
    for _ in range(arguments.rounds):
        speeds, round_limits = linnet_speeds(arguments.linnet, arguments.model, arguments.threads)
        for name, value in speeds.items():
            ours.setdefault(name, []).append(value)
            limits.setdefault(name, []).append(round_limits[name])
        for name, value in llama_speeds(arguments.llama, arguments.model, arguments.threads).items():
            theirs.setdefault(name, []).append(value)
        port = free_port()
        ours.setdefault("start s", []).append(start_seconds([arguments.linnet, "serve", arguments.model, "--port", str(port)], port))
        port = free_port()
        theirs.setdefault("start s", []).append(start_seconds([os.path.join(arguments.llama, "llama-server"), "-m", arguments.model, "-t", str(arguments.threads), "--port", str(port)], port))
    print(f"{'median of ' + str(arguments.rounds):14} {'linnet':>10} {'llama.cpp':>10} {'ratio':>7} {'of limit':>9}")
    for name, values in ours.items():
        pairs = [a / b for a, b in zip(values, theirs[name])]
        limit = f"{100 * statistics.median(a / b for a, b in zip(values, limits[name])):8.0f}%" if name in limits else ""
        print(f"{name:14} {statistics.median(values):10.2f} {statistics.median(theirs[name]):10.2f} {statistics.median(pairs):7.2f} {limit:>9}")


main()
