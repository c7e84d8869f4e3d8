#!/usr/bin/env python3
"""`linnet serve` with two models (one file under two names): loaded when asked for, told apart, unloaded; metrics, steps and traces.

Usage: serve_models_test.py LINNET"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request


def check(condition, message):
    if not condition:
        raise SystemExit(message)


class Server:
    def __init__(self, *command):
        self.process = subprocess.Popen([*command, "--port", "0"], stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if found := re.search(r"serving at (http://\S+)", line):
                self.url = found.group(1)
                return
        raise SystemExit(f"the server ended with {self.process.wait()}")

    def call(self, path, body=None, headers=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json", **(headers or {})})
        try:
            with urllib.request.urlopen(request, timeout=120) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def ask(self, model, headers=None):
        messages = [{"role": "user", "content": "What is the capital of France?"}]
        status, text = self.call("/v1/chat/completions", {"model": model, "messages": messages, "max_tokens": 6, "temperature": 0}, headers)
        return status, json.loads(text)

    def stop(self):
        self.process.terminate()
        self.process.stderr.close()
        return self.process.wait()


def check_server(server, first, second):
    ids = [model["id"] for model in json.loads(server.call("/v1/models")[1])["data"]]
    check(ids == [first, second], f"/v1/models lists {ids}")
    status, reply = server.ask("another")
    check(status == 404 and reply["error"]["code"] == "model_not_found", f"an unknown model: {status} {reply}")
    answers = []
    for model in (second, first):
        status, reply = server.ask(model, {"x-linnet-trace-id": f"trace-of-{model}"})
        check(status == 200 and reply["model"] == model, f"{model}: {status} {reply}")
        answers.append(reply["choices"][0]["message"]["content"])
    check(answers[0] and answers[0] == answers[1], f"one file under two names gives {answers}")

    metrics = server.call("/metrics")[1]
    for model in (first, second):
        check(f'linnet_ttft_seconds_count{{model="{model}"}} 1\n' in metrics, f"no TTFT of {model} in {metrics}")
        steps = [engine for engine in json.loads(server.call("/debug/steps?format=json")[1]) if engine["model"] == model][0]["steps"]
        check(sum(step["samples"] for step in steps) == 6 and steps[0]["prefill_tokens"] > 6, f"steps of {model}: {steps}")
        events = json.loads(server.call(f"/debug/trace/trace-of-{model}")[1])["traceEvents"]
        names = {event["name"] for event in events}
        check(names == {"queued", "cache.lookup_restore", "prefill", "decode", "done"}, f"trace of {model}: {names}")

    check(server.call(f"/v1/models/{second}/unload", {})[0] == 200, "unload")
    check(f'model="{second}"' not in server.call("/metrics")[1], "an unloaded model has no engine to measure")
    check(server.ask(second)[0] == 200, "it is loaded again when it is asked for")


def main():
    linnet = sys.argv[1]
    model = os.environ.get("LINNET_DEMO_MODEL") or subprocess.run([linnet, "get", "demo"], capture_output=True, check=True, text=True).stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        other = pathlib.Path(folder) / "other.gguf"
        other.symlink_to(model)
        server = Server(linnet, "serve", model, str(other), "--context", "512", "--max-rows", "2", "--memory-budget", "1G")
        try:
            check_server(server, pathlib.Path(model).stem, "other")
        finally:
            status = server.stop()
        check(status == 0, f"the server ended with {status}")


main()
