#!/usr/bin/env python3
"""The official openai and anthropic clients against the real binary with the demo model.

Usage: clients_test.py LINNET"""
import contextlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

import anthropic
import openai

LINNET = sys.argv.pop(1)
KEY = "clients-test-key"
HI = [{"role": "user", "content": "What is the capital of France?"}]
PATIENCE_S = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def served(*flags):
    """A server with the demo model; its base URL."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        store = f"{folder}/responses.sqlite3"
        command = [LINNET, "serve", "demo", "--port", str(port), "--api-key", KEY, "--responses", store, *flags]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            url = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + PATIENCE_S
            while True:
                try:
                    urllib.request.urlopen(f"{url}/health", timeout=5).close()
                    break
                except OSError:
                    if process.poll() is not None or time.monotonic() > deadline:
                        raise RuntimeError(f"{command} does not serve") from None
            yield url
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


class OpenAiClient(unittest.TestCase):
    def setUp(self):
        self.client = openai.OpenAI(base_url=URL + "/v1", api_key=KEY, max_retries=0)

    def test_models(self):
        models = list(self.client.models.list())
        self.assertEqual(self.client.models.retrieve(models[0].id).id, models[0].id)

    def test_chat_and_stream_agree(self):
        fields = dict(model="demo", messages=HI, temperature=0, max_tokens=16)
        whole = self.client.chat.completions.create(**fields)
        self.assertIn("Paris", whole.choices[0].message.content)
        self.assertEqual(whole.usage.total_tokens, whole.usage.prompt_tokens + whole.usage.completion_tokens)
        text, usage = "", None
        for chunk in self.client.chat.completions.create(stream=True, stream_options={"include_usage": True}, **fields):
            usage = chunk.usage or usage
            text += "".join(choice.delta.content or "" for choice in chunk.choices)
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(usage.completion_tokens, whole.usage.completion_tokens)

    def test_raw_response_has_a_request_id(self):
        raw = self.client.chat.completions.with_raw_response.create(model="demo", messages=HI, max_tokens=1)
        self.assertTrue(raw.headers["x-request-id"])
        self.assertEqual(raw.parse().choices[0].finish_reason, "length")

    def test_completions(self):
        answer = self.client.completions.create(model="demo", prompt="The sea is", temperature=0, max_tokens=4)
        self.assertEqual(answer.usage.completion_tokens, 4)

    def test_responses(self):
        first = self.client.responses.create(model="demo", input=HI[0]["content"], temperature=0, max_output_tokens=16)
        self.assertIn("Paris", first.output_text)
        self.assertEqual(self.client.responses.retrieve(first.id).output_text, first.output_text)
        second = self.client.responses.create(model="demo", input="And of Italy?", previous_response_id=first.id, max_output_tokens=8)
        self.assertEqual(second.previous_response_id, first.id)
        self.assertGreater(second.usage.input_tokens, first.usage.input_tokens)
        self.client.responses.delete(first.id)
        with self.assertRaises(openai.NotFoundError):
            self.client.responses.retrieve(first.id)

    def test_responses_stream(self):
        text, final = "", None
        with self.client.responses.stream(model="demo", input=HI[0]["content"], temperature=0, max_output_tokens=4) as stream:
            for number, event in enumerate(stream):
                self.assertEqual(event.sequence_number, number)
                if event.type == "response.output_text.delta":
                    text += event.delta
                final = event
        self.assertEqual(final.type, "response.incomplete")
        self.assertEqual(final.response.output_text, text)

    def test_errors_are_their_classes(self):
        create = self.client.chat.completions.create
        with self.assertRaises(openai.BadRequestError) as wrong:
            create(model="demo", messages=HI, temperature=-1)
        self.assertEqual(wrong.exception.param, "temperature")
        with self.assertRaises(openai.AuthenticationError):
            openai.OpenAI(base_url=URL + "/v1", api_key="wrong", max_retries=0).models.list()
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("no-such-model")
        with self.assertRaises(openai.BadRequestError) as long:
            create(model="demo", messages=[{"role": "user", "content": "word " * 20000}])
        self.assertEqual(long.exception.code, "context_length_exceeded")


def prompt_tokens(usage):
    """What was computed and what the prompt cache had, which Anthropic counts apart."""
    return usage.input_tokens + (usage.cache_read_input_tokens or 0)


class AnthropicClient(unittest.TestCase):
    def setUp(self):
        self.client = anthropic.Anthropic(base_url=URL, api_key=KEY, max_retries=0)

    def test_message_and_stream_agree(self):
        fields = dict(model="demo", messages=HI, system="Answer in one sentence.", max_tokens=16, extra_body={"temperature": 0})
        whole = self.client.messages.create(**fields)
        self.assertIn("Paris", whole.content[0].text)
        with self.client.messages.stream(**fields) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        self.assertEqual(text, whole.content[0].text)
        self.assertEqual(final.stop_reason, whole.stop_reason)
        self.assertEqual(final.usage.output_tokens, whole.usage.output_tokens)
        self.assertEqual(prompt_tokens(final.usage), prompt_tokens(whole.usage))

    def test_count_tokens_is_what_a_message_reads(self):
        counted = self.client.messages.count_tokens(model="demo", messages=HI)
        message = self.client.messages.create(model="demo", messages=HI, max_tokens=1)
        self.assertEqual(counted.input_tokens, prompt_tokens(message.usage))
        self.assertEqual(message.stop_reason, "max_tokens")

    def test_stop_sequence_is_named(self):
        fields = dict(model="demo", messages=HI, max_tokens=32, extra_body={"temperature": 0})
        message = self.client.messages.create(stop_sequences=["Paris"], **fields)
        self.assertEqual((message.stop_reason, message.stop_sequence), ("stop_sequence", "Paris"))
        self.assertNotIn("Paris", "".join(block.text for block in message.content))

    def test_errors_are_their_classes(self):
        with self.assertRaises(anthropic.BadRequestError):
            self.client.messages.create(model="demo", messages=[], max_tokens=1)
        with self.assertRaises(anthropic.AuthenticationError):
            anthropic.Anthropic(base_url=URL, api_key="wrong", max_retries=0).messages.count_tokens(model="demo", messages=HI)
        with self.assertRaises(anthropic.BadRequestError):
            tool = {"name": "f", "input_schema": {"type": "object"}}
            self.client.messages.create(model="demo", messages=HI, max_tokens=1, tools=[tool])


class FullServer(unittest.TestCase):
    """One request runs, one waits: the next is a 429, which clients try again."""

    def test_rate_limit_and_retries(self):
        with served("--max-rows", "1", "--max-waiting", "1") as url:
            client = openai.OpenAI(base_url=url + "/v1", api_key=KEY, max_retries=0)
            fields = dict(model="demo", prompt="The sea is", max_tokens=4000, stream=True, extra_body={"ignore_eos": True})
            running = client.completions.create(**fields)
            next(iter(running))
            stubborn = client.with_options(max_retries=50)
            waiting = threading.Thread(target=lambda: stubborn.completions.create(model="demo", prompt="x", max_tokens=1))
            waiting.start()
            with self.assertRaises(openai.RateLimitError) as full:
                deadline = time.monotonic() + PATIENCE_S
                while time.monotonic() < deadline:  # until one waits: this, or the thread's
                    with contextlib.suppress(openai.APITimeoutError):
                        client.with_options(timeout=0.3).completions.create(model="demo", prompt="x", max_tokens=1)
            self.assertEqual(full.exception.response.headers["retry-after"], "1")
            patient = anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=20)
            threading.Timer(0.5, running.close).start()
            message = patient.messages.create(model="demo", messages=HI, max_tokens=1)
            self.assertEqual(message.usage.output_tokens, 1)
            waiting.join()


if __name__ == "__main__":
    with served() as URL:
        unittest.main(exit=True)
