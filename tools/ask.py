#!/usr/bin/env python3
"""Asks a running server one question by streamed chat completion, prints the answer as it comes, then the speed.

Usage: ask.py PORT QUESTION   (standard library only)"""
import json
import sys
import time
import urllib.error
import urllib.request


def main():
    port, question = sys.argv[1:]
    body = {"messages": [{"role": "user", "content": question}], "stream": True, "stream_options": {"include_usage": True}, "temperature": 0}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    start, first, usage = time.monotonic(), None, {}
    try:
        reply = urllib.request.urlopen(request, timeout=120)
    except urllib.error.HTTPError as error:
        sys.exit(f"the server answered {error.code}: {error.read().decode()}")
    print(f"> {question}")
    for line in reply:
        if not line.startswith(b"data: {"):
            continue
        event = json.loads(line[6:])
        usage = event.get("usage") or usage
        for choice in event["choices"]:
            text = choice["delta"].get("content")
            if text:
                first = first or time.monotonic()
                print(text, end="", flush=True)
    end = time.monotonic()
    tokens = usage.get("completion_tokens", 0)
    if first is None:
        sys.exit("the answer was empty")
    print(f"\n[{usage.get('prompt_tokens', 0)} prompt tokens; first token after {(first - start) * 1e3:.0f} ms; {tokens} tokens, {(tokens - 1) / max(end - first, 1e-9):.0f} tokens/s]")


main()
