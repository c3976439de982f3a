#!/usr/bin/env python3
"""Prints the sources to check again after a change, one path a line.
Usage: scripts/affected.py BASE QUARTER sources|tests

BASE: a commit. QUARTER: 0 to 3.
sources: those of libraries and programs. tests: *_test.cc.

A room (docs/architecture.md) is affected if a file of it has changed since BASE, or
if it includes a header that has changed or that belongs to a changed source. Printed
are the sources, or tests, of affected rooms, changed tests and those beside a changed
helper, and a quarter of all others, so that four quarters see everything.
"""
import collections
import hashlib
import os
import re
import subprocess
import sys

LAYERS = ("base/", "store/", "agent/", "launcher/", "comm/", "cli/")
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
    return {os.path.dirname(path) for path in changed | including}


def main():
    base, quarter, kind = sys.argv[1:]
    changed = set(git("diff", "--name-only", base, "HEAD"))
    files = [path for path in git("ls-files", "*.cc", "*.h") if os.path.exists(path)]
    rooms = affected_rooms(changed, {path: includes_of(path) for path in files})
    chosen = collections.Counter()
    for path in files:
        is_test = path.startswith("tests/") and path.endswith("_test.cc")
        wanted = is_test if kind == "tests" else path.startswith(LAYERS) and path.endswith(".cc")
        if not wanted:
            continue
        room = os.path.dirname(path)
        digest = hashlib.sha256(path.encode()).digest()
        is_affected = room in rooms or room.removeprefix("tests/") in rooms
        chosen[is_affected] += 1
        if is_affected or digest[0] % 4 == int(quarter):
            print(path)
    print(f"affected.py: {kind} of {chosen[True]} of {chosen.total()} are affected",
          file=sys.stderr)


main()
