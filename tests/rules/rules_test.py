#!/usr/bin/env python3
"""Rules of the house that a machine can check. Each violation is one line; the exemptions only shrink.

Usage: rules_test.py SOURCE_DIR"""
import hashlib
import pathlib
import re
import sys

LINES_MAX = 600
# Where known codebases rot: the loop, the planner, the executors.
LINES_MAX_OF = {"src/engine/engine.cc": 400, "src/sched/planner.cc": 400, "src/backends/cpu/executor.cc": 400, "src/backends/mlx/executor.cc": 400}
SOURCES = {".h", ".cc", ".rs", ".py"}
FOLDERS = ["src", "include", "rust/src", "tests", "bench", "fuzz", "tools"]
# Everything that people read: in these no path of one machine, or of one place of work, has a place.
TEXTS = SOURCES | {".md", ".txt", ".cmake", ".json", ".toml", ".yml", ""}
TEXT_FOLDERS = [*FOLDERS, "docs", "cmake", ".ci"]
FOREIGN_PATHS = re.compile(r"(?<![\w.}])/(work|root|home/\w+)/|(?<![\w/.-])shared/")
MARKS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
SKIPPED_TESTS = re.compile(r"\b(GTEST_SKIP|DISABLED_\w*|SUCCEED\(\))")
RELATIVE_INCLUDE = re.compile(r'#include\s+"\.\./')
VAGUE_NAMES = re.compile(r"(^|_)(util|utils|common|core|misc|helper|helpers|manager)(_|\.|$)")
SLEEPS = re.compile(r"\bsleep_(for|until)\s*\(|\.detach\(\)")
CLOCKS = re.compile(r"\b(steady_clock|system_clock|high_resolution_clock)\b(?!::(duration|time_point))|\b(clock_gettime|gettimeofday)\s*\(")

# path: rule. To be made shorter, never longer.
EXEMPT = {
    "src/base/clock.h": {"clock"},
    # Wall-clock measurement of the machine, not behaviour.
    "src/backends/cpu/probe.cc": {"clock"},
    "src/http/raw_client.cc": {"clock"},  # of the tests alone
    "src/server/commands/answer.cc": {"clock"},
    "src/server/commands/bench_command.cc": {"clock"},
}


def files(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SOURCES and path.is_file():
                yield path


def violations(root):
    for path in files(root):
        name = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        lines = text.count("\n")
        exempt = EXEMPT.get(name, set())
        is_test = "test" in path.name or name.startswith("tests/")
        in_product = name.startswith(("src/", "include/")) and not is_test
        if lines > LINES_MAX_OF.get(name, LINES_MAX):
            yield f"{name}: {lines} lines, more than {LINES_MAX_OF.get(name, LINES_MAX)}"
        if name != "tests/rules/rules_test.py":
            for rule, pattern in (("mark", MARKS), ("skipped test", SKIPPED_TESTS), ("relative include", RELATIVE_INCLUDE)):
                if match := pattern.search(text):
                    yield f"{name}: {rule}: {match.group(0)}"
        if VAGUE_NAMES.search(path.name):
            yield f"{name}: a name that says nothing"
        if in_product and "clock" not in exempt and CLOCKS.search(text):
            yield f"{name}: reads a clock; only base/clock.h does"
        if in_product and SLEEPS.search(text):
            yield f"{name}: sleeps or detaches a thread"


def texts(root):
    yield from sorted(p for p in root.iterdir() if p.is_file() and p.suffix in TEXTS)
    for folder in TEXT_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.suffix in TEXTS and not path.is_relative_to(root / "tests/data") and path.parent.name != "__pycache__":
                yield path


def foreign_paths(root):
    for path in texts(root):
        name = path.relative_to(root).as_posix()
        if name == "tests/rules/rules_test.py":
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if match := FOREIGN_PATHS.search(line):
                yield f"{name}:{number}: a path that is on one machine only: {match.group(0)}"


def stale_notice(root):
    checksum = hashlib.sha256((root / "rust/Cargo.lock").read_bytes()).hexdigest()
    if checksum not in (root / "NOTICE").read_text(encoding="utf-8"):
        yield "NOTICE: not made from this rust/Cargo.lock; run `make notice`"


def stale_exemptions(root):
    """An exemption that nothing needs any more goes."""
    for name, rules in EXEMPT.items():
        path = root / name
        if not path.is_file() or ("clock" in rules and not CLOCKS.search(path.read_text(encoding="utf-8"))):
            yield f"{name}: is exempt and need not be; take it off the list"


def folders_without_targets(root):
    for folder in sorted(p for p in (root / "src").rglob("*") if p.is_dir()):
        sources = [p for p in folder.iterdir() if p.suffix == ".cc"]
        covered = any((parent / "CMakeLists.txt").exists() for parent in [folder, *folder.parents] if root in parent.parents and parent != root / "src")
        if sources and not covered:
            yield f"{folder.relative_to(root).as_posix()}: no CMakeLists.txt builds it"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    found = [
        *violations(root),
        *foreign_paths(root),
        *stale_notice(root),
        *stale_exemptions(root),
        *folders_without_targets(root),
    ]
    print("\n".join(found))
    sys.exit(1 if found else 0)


main()
