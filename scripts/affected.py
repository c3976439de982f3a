#!/usr/bin/env python3
"""Prints the sources to check again after a change, one path a line.
Usage: scripts/affected.py BASE QUARTER sources|asan|tsan

BASE: a commit. QUARTER: 0 to 3, another one in each run.
sources: those of libraries and programs. asan, tsan: *_test.cc for that sanitizer.

A room (docs/architecture.md) is affected if a file of it has changed since BASE, or
if it includes a header that has changed or that belongs to a changed source; tests/process
also if a program has changed. Printed are the sources, or tests, of affected rooms,
changed tests and those beside a changed helper, and a quarter of all others, so that four
runs see everything. If more than a third of the files are affected, only changed ones are printed
beside the quarter, so that a run stays short; the two sanitizers have different quarters.
"""
import hashlib
import os
import re
import subprocess
import sys

LAYERS = ("base/", "store/", "agent/", "launcher/", "comm/", "cli/", "python/")
PROGRAMS = ("agent/", "launcher/", "cli/", "tests/process/")  # which tests/process runs
INCLUDE = re.compile(r'^#include ["<]([\w./-]+)[">]', re.M)


def git(*words):
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout.split()


def includes_of(path):
    """The headers of this repository that a file includes, as paths."""
    with open(path, encoding="utf-8") as file:
        names = INCLUDE.findall(file.read())
    return {"comm/include/" + name if name.startswith("rankrun/") else name for name in names}


def headers_of(path, includes):
    """The headers that declare what a file defines."""
    if path.endswith(".h"):
        return {path}
    own = path.removesuffix(".cc") + ".h"
    room = os.path.dirname(path)
    return {own} & includes or {name for name in includes if os.path.dirname(name) == room}


def affected_rooms(changed, includes):
    headers = set()
    for path in changed & set(includes):
        headers |= headers_of(path, includes[path])
    including = {path for path, names in includes.items() if names & headers}
    rooms = {os.path.dirname(path) for path in changed | including}
    if any(path.startswith(PROGRAMS) for path in changed):
        rooms |= {os.path.dirname(path) for path in includes if path.startswith("tests/process/")}
    return rooms


def main():
    base, quarter, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    changed = set(git("diff", "--name-only", base))
    files = [path for path in git("ls-files", "*.cc", "*.h") if os.path.exists(path)]
    rooms = affected_rooms(changed, {path: includes_of(path) for path in files})
    if kind == "sources":
        files = [path for path in files if path.startswith(LAYERS) and path.endswith(".cc")]
    else:
        files = [path for path in files if path.startswith("tests/") and path.endswith("_test.cc")]
    affected = {path for path in files
                if {os.path.dirname(path), os.path.dirname(path).removeprefix("tests/")} & rooms}
    is_wide = 3 * len(affected) > len(files)
    checked = affected & changed if is_wide else affected
    own_quarter = (quarter + 2 * (kind == "tsan")) % 4
    for path in files:
        if path in checked or hashlib.sha256(path.encode()).digest()[0] % 4 == own_quarter:
            print(path)
    print(f"{kind}: {len(affected)} of {len(files)} files are affected"
          + (", only changed ones and a quarter are checked in this run" if is_wide else ""),
          file=sys.stderr)


main()
