#!/usr/bin/env python3
"""Writes the Rust part of NOTICE: every crate that is linked into Linnet, with its licence, from `cargo metadata`.

What stands above the marker line is kept by hand. Run it (`make notice`) whenever rust/Cargo.lock changes; the `rules` test compares the
checksum it leaves. Build scripts and procedural macros run in the compiler and are not part of what is shipped: they are left out."""
import hashlib
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOTICE = ROOT / "NOTICE"
LOCK = ROOT / "rust" / "Cargo.lock"
MARKER = "## Rust crates"
PLATFORMS = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "aarch64-apple-darwin"]


def metadata(platform):
    command = ["cargo", "metadata", "--manifest-path", str(ROOT / "rust" / "Cargo.toml"), "--format-version", "1", "--locked"]
    run = subprocess.run([*command, "--filter-platform", platform], stdout=subprocess.PIPE, check=False)
    if run.returncode != 0:
        sys.exit(f"make_notice: {' '.join(command)} failed; its own words are above")
    return json.loads(run.stdout)


def is_macro(package):
    return any("proc-macro" in target["kind"] for target in package["targets"])


def linked(platform):
    """The packages that normal dependencies reach from ours, ours excluded."""
    graph = metadata(platform)
    packages = {package["id"]: package for package in graph["packages"]}
    nodes = {node["id"]: node for node in graph["resolve"]["nodes"]}
    root = graph["resolve"]["root"]
    reached, waiting = set(), [root]
    while waiting:
        node = waiting.pop()
        if node in reached or is_macro(packages[node]):
            continue
        reached.add(node)
        waiting += [dep["pkg"] for dep in nodes[node]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
    return [packages[node] for node in reached - {root}]


def main():
    crates = {(p["name"], p["version"]): p for platform in PLATFORMS for p in linked(platform)}
    without = sorted(name for (name, _), p in crates.items() if not p["license"])
    if without:
        sys.exit(f"make_notice: no licence in the metadata of {', '.join(without)}; look them up and say so in the part kept by hand")
    kept, marker, _ = NOTICE.read_text(encoding="utf-8").partition(MARKER + "\n")
    if not marker:
        sys.exit(f"make_notice: {NOTICE} has no line {MARKER!r}")
    lines = [f"- {name} {version}: {p['license']}; {p['repository'] or 'https://crates.io/crates/' + name}" for (name, version), p in sorted(crates.items())]
    checksum = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    head = f"Linked into the binary; written by tools/make_notice.py from rust/Cargo.lock with SHA-256\n{checksum}.\n"
    NOTICE.write_text(f"{kept}{MARKER}\n\n{head}\n" + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"NOTICE: {len(lines)} crates")


main()
