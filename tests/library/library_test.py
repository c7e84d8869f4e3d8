#!/usr/bin/env python3
"""Installs into the build folder, builds examples/ against what was installed, and runs them on the demo model.

Usage: library_test.py SOURCE_DIR BUILD_DIR CXX SANITIZERS"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

PROMPT = "The capital of France is"
# What a shared library of C++ may show beside our own classes: std:: templates made for them, and what the linker adds.
SHOWN = re.compile(r"^(typeinfo( name)? for |vtable for )?linnet::(version|Engine|RequestHandle|TextEngine|TextSource)\b")


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def check(condition, message):
    if not condition:
        sys.exit(message)


def check_symbols(library):
    names = {line.split(" ", 2)[2] for line in run("nm", "-D", "-C", "--defined-only", library).splitlines()}
    for name in names:
        check(SHOWN.match(name) and "::Impl" not in name, f"{library} shows {name}")
    for name in ("TextEngine::load(", "TextEngine::run(", "Engine::submit(", "RequestHandle::next(", "version("):
        check(any(shown.startswith("linnet::" + name) for shown in names), f"{library} does not show linnet::{name}...)")


def demo_model(binary):
    return os.environ.get("LINNET_DEMO_MODEL") or run(binary, "get", "demo").strip()


def main():
    source, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    compiler, sanitizers = sys.argv[3], sys.argv[4]
    prefix, examples = build / "installed", build / "examples"
    for folder in (prefix, examples):
        shutil.rmtree(folder, ignore_errors=True)
    run("cmake", "--install", build, "--prefix", prefix)
    binary = prefix / "bin/linnet"
    if not sanitizers:
        check_symbols(next(prefix.glob("lib*/**/liblinnet.so")))
    configuration = ["-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wno-missing-field-initializers -Werror" + (f" -fsanitize={sanitizers}" if sanitizers else "")]
    run("cmake", "-G", "Ninja", "-S", source / "examples", "-B", examples, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={compiler}", *configuration)
    run("cmake", "--build", examples)

    # The binary and both examples say the same: alone, and eight at once.
    model = demo_model(binary)
    def alone(prompt):
        return run(examples / "blocking", model, prompt)[:-1]
    check(alone(PROMPT) == run(binary, "generate", model, PROMPT, "--raw", "--temp", "0", "--max-tokens", "32")[:-1], "blocking and `linnet generate` differ")
    answers = run(examples / "streams", model, PROMPT).split("\n---\n")[:-1]
    check(len(answers) == 8, f"streams gave {len(answers)} answers")
    for number, answer in enumerate(answers):
        check(answer and answer == alone(f"{number}: {PROMPT}"), f"stream {number} differs from its lone run: {answer!r}")


main()
