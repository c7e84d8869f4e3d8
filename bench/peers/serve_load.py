#!/usr/bin/env python3
"""Streams chat completions at concurrency 1, 4 and 8 against an OpenAI-compatible server on this machine, then prefills a prompt of
6,000 tokens while another stream is decoding. Prints total tokens/s, time to first token and gaps between tokens.

Usage: serve_load.py PORT     (needs httpx). It runs on the machine that it measures and takes its share of the cores."""
import asyncio
import json
import statistics
import sys
import time

import httpx

PORT = int(sys.argv[1])
SENTENCE = "Tell me a long story about the sea. "  # about 9 tokens


async def stream(client, tag, tokens=64, repeats=7):
    """Seconds to the first token, tokens, gaps between them."""
    body = {"model": "demo", "max_tokens": tokens, "temperature": 0, "stream": True, "ignore_eos": True,
            "messages": [{"role": "user", "content": f"{tag} " + SENTENCE * repeats}]}
    start, times = time.monotonic(), []
    async with client.stream("POST", f"http://127.0.0.1:{PORT}/v1/chat/completions", json=body) as reply:
        async for line in reply.aiter_lines():
            if not line.startswith("data: {"):
                continue
            choices = json.loads(line[6:]).get("choices") or []
            if choices and choices[0]["delta"].get("content"):
                times.append(time.monotonic())
    return times[0] - start, len(times), [b - a for a, b in zip(times, times[1:])]


async def main():
    async with httpx.AsyncClient(timeout=300) as client:
        await stream(client, 0)
        for count in (1, 4, 8):
            start = time.monotonic()
            runs = await asyncio.gather(*[stream(client, 100 * count + i) for i in range(count)])
            took = time.monotonic() - start
            gaps = sorted(gap for run in runs for gap in run[2])
            print(f"streams {count}: {sum(run[1] for run in runs) / took:.1f} tok/s, first token {statistics.mean(run[0] for run in runs) * 1e3:.0f} ms, "
                  f"gap p50 {gaps[len(gaps) // 2] * 1e3:.1f} ms, p99 {gaps[int(len(gaps) * .99)] * 1e3:.1f} ms")
        running = asyncio.create_task(stream(client, 7777, tokens=400))
        await asyncio.sleep(.5)
        long = await stream(client, 8888, tokens=4, repeats=660)
        run = await running
        print(f"a prompt of 6,000 tokens: first token {long[0] * 1e3:.0f} ms; the other stream's worst gap {max(run[2]) * 1e3:.0f} ms, "
              f"p50 {statistics.median(run[2]) * 1e3:.1f} ms")


asyncio.run(main())
