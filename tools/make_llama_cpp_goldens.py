#!/usr/bin/env python3
"""Greedy answers of llama.cpp on the demo model, with the margin between its first and second choice at every token.

Usage: make_llama_cpp_goldens.py LLAMA_SERVER MODEL.gguf OUT.json
Starts LLAMA_SERVER on a free loopback port. The answers are what tests/real compares Linnet's with: equal, or different from a token
on whose margin was within what int8 activations (llama.cpp's) are off."""
import json
import socket
import subprocess
import sys
import time
import urllib.request

PROMPTS = [
    "What is the capital of France?",
    "Write a short story about a lighthouse keeper.",
    "Explain how a bicycle stays upright.",
    "List five fruits and one fact about each.",
    "Write a Python function that reverses a string.",
]
TOKENS = 200


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def post(port, path, body):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as reply:
        return json.load(reply)


def wait_ready(port):
    for _ in range(300):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server did not become ready")


def answer(port, prompt):
    text = post(port, "/apply-template", {"messages": [{"role": "user", "content": prompt}]})["prompt"]
    ids = post(port, "/tokenize", {"content": text, "add_special": False, "parse_special": True})["tokens"]
    reply = post(port, "/completion", {"prompt": ids, "n_predict": TOKENS, "temperature": 0, "n_probs": 2, "cache_prompt": False, "return_tokens": True})
    steps = reply["completion_probabilities"]
    tokens, margins = [], []
    for step in steps:
        top = step["top_logprobs"]
        tokens.append(step["id"])
        margins.append(round(top[0]["logprob"] - top[1]["logprob"], 4))
    return {"text": prompt, "prompt": ids, "answer": tokens, "margins": margins}


def main():
    server, model, out = sys.argv[1:]
    port = free_port()
    process = subprocess.Popen([server, "-m", model, "--port", str(port), "-t", "2", "-np", "1", "-c", "2048"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_ready(port)
        answers = [answer(port, prompt) for prompt in PROMPTS]
    finally:
        process.terminate()
        process.wait()
    with open(out, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(a) for a in answers) + "\n]\n")


main()
