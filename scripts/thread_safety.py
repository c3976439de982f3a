#!/usr/bin/env python3
"""Checks with clang's thread safety analysis that the code of all layers holds the
mutexes that its annotations name (base/mutex.h). Compiles each source file once,
without output. Usage: scripts/thread_safety.py [PATH-PREFIX...]
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/clang"
LAYERS = ("base/", "store/", "agent/", "launcher/", "comm/", "cli/")


def commands(prefixes):
    """Returns one clang++ command for each source file: some are built twice."""
    found = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        file = os.path.relpath(entry["file"], ROOT)
        if file.startswith(prefixes) and file.endswith(".cc"):
            words = shlex.split(entry["command"])
            begin = next(i for i, word in enumerate(words) if word.endswith("clang++"))
            output = words.index("-o")
            found[file] = (words[begin:output] + words[output + 2:] +
                           ["-fsyntax-only", "-Wthread-safety", "-Werror"])
    return found


def check(command):
    return subprocess.run(command, cwd=BUILD, stderr=subprocess.PIPE, text=True)


def main():
    subprocess.run(["cmake", "--preset", "clang"], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)
    todo = commands(tuple(sys.argv[1:]) or LAYERS)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(check, todo.values()))
    failed = [result for result in results if result.returncode != 0]
    for result in failed:
        print(result.stderr)
    print(f"{len(todo)} files, {len(failed)} failed")
    return 1 if failed or not todo else 0


sys.exit(main())
