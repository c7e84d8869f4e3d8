#!/usr/bin/env python3
"""Asks a running server one question by streamed chat completion, prints the answer as it comes, then the speed.

Usage: ask.py PORT QUESTION   (standard library only)"""
import json
import sys
import time
import urllib.error
import urllib.request


def open_stream(port, question):
    body = {
        "messages": [{"role": "user", "content": question}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0,
    }
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    try:
        return urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"}), timeout=120)
    except urllib.error.HTTPError as error:
        sys.exit(f"the server answered {error.code}: {error.read().decode(errors='replace')}")
    except OSError as error:
        sys.exit(f"cannot ask {url}: {error}")


def main():
    port, question = sys.argv[1:]
    start, first, usage, done = time.monotonic(), None, {}, False
    reply = open_stream(port, question)
    print(f"> {question}")
    for line in reply:
        done = done or line.startswith(b"data: [DONE]")
        if not line.startswith(b"data: {"):
            continue
        event = json.loads(line[6:])
        if "error" in event:
            sys.exit(f"\nthe server failed: {event['error']}")
        usage = event.get("usage") or usage
        for choice in event["choices"]:
            text = choice["delta"].get("content")
            if text:
                first = first or time.monotonic()
                print(text, end="", flush=True)
    end = time.monotonic()
    if first is None:
        sys.exit("the answer was empty")
    if not done:
        sys.exit("\nthe answer broke off")
    prompt, tokens = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
    speed = f"{(tokens - 1) / (end - first):.0f} tokens/s" if tokens > 1 and end > first else "too short for a speed"
    print(f"\n[{prompt} prompt tokens; first token after {(first - start) * 1e3:.0f} ms; {tokens} tokens, {speed}]")


main()
