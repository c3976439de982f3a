#!/usr/bin/env python3
"""Runs clang-tidy on the sources of the libraries and programs.
Usage: scripts/tidy.py BUILD-FOLDER [PATH-PREFIX...]

BUILD-FOLDER: of the preset `clang`. PATH-PREFIX: only sources below it, for
example comm/rpc or a single one; default: all sources of compile_commands.json but
bench and examples.

Most of clang-tidy's time for one source goes into the standard headers, so 30
sources with the same flags are checked as one unit. The sources of a unit with a
finding, or that do not compile in it, are checked again alone. A source without a
finding is not checked again until it or one of our headers that it includes
changes: ~/.cache/rankrun-tidy has the hashes.
Prints the findings; exits 1 if there is one.
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys

UNIT_SIZE = 30
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
                     "rankrun-tidy")
FOLDERS = ("base/", "store/", "agent/", "launcher/", "comm/", "cli/", "python/")
INCLUDE = re.compile(rb'^#include ["<]([\w./-]+)[">]', re.M)
FINDING = re.compile(r"^(/[^:\n]+):\d+:\d+: (?:warning|error|fatal error): .*$", re.M)


def commands(build, prefixes):
    """The sources of each set of flags: {(flags, in which folder): [source]}."""
    root = os.getcwd() + "/"
    sources = {}
    with open(f"{build}/compile_commands.json") as file:
        for entry in json.load(file):
            source = entry["file"]
            if not source.endswith(".cc") or not source.startswith(
                    tuple(root + prefix for prefix in prefixes)):
                continue
            words = shlex.split(entry["command"])
            output = words.index("-o")
            del words[output:output + 2]
            words = [word for word in words[1:] if word not in ("-c", source)]
            sources.setdefault((tuple(words), entry["directory"]), []).append(source)
    return sources


@functools.cache
def versions():
    program = subprocess.run(["clang-tidy", "--version"], check=True, capture_output=True)
    with open(".clang-tidy", "rb") as checks, open(__file__, "rb") as script:
        return program.stdout + checks.read() + script.read()


@functools.cache
def read(path):
    with open(path, "rb") as file:
        return file.read()


@functools.cache
def includes_of(path):
    names = [name.decode() for name in INCLUDE.findall(read(path))]
    paths = ["comm/include/" + name if name.startswith("rankrun/") else name for name in names]
    return [path for path in paths if os.path.exists(path)]


def key_of(source, flags):
    """The hash of all that decides what clang-tidy finds, but the system's headers."""
    files, new = set(), [os.path.relpath(source)]
    while new:
        path = new.pop()
        if path not in files:
            files.add(path)
            new += includes_of(path)
    digest = hashlib.sha256(versions() + " ".join(flags).replace(os.getcwd(), "").encode())
    for path in sorted(files):
        digest.update(path.encode() + b"\0" + read(path))
    return digest.hexdigest()


class Unit:
    def __init__(self, flags, directory, sources):
        self.flags, self.directory, self.sources = flags, directory, sources

    def path(self, folder, number):
        if len(self.sources) == 1:
            return self.sources[0]
        path = f"{folder}/unit_{number}.cc"
        with open(path, "w") as file:
            file.writelines(f'#include "{source}"\n' for source in self.sources)
        return path

    def findings(self, folder, number):
        result = subprocess.run(
            ["clang-tidy", "--quiet", self.path(folder, number), "--", *self.flags],
            cwd=self.directory, capture_output=True, text=True)
        if result.returncode == 0:
            for source in self.sources:
                open(os.path.join(CACHE, key_of(source, self.flags)), "w").close()
            return ""
        output = result.stdout + result.stderr
        if len(self.sources) == 1:
            return output
        blamed = {path for path in FINDING.findall(output) if path in self.sources}
        rest = [source for source in self.sources if source not in blamed]
        alone = blamed or self.sources
        found = "".join(Unit(self.flags, self.directory, [source]).findings(folder, number)
                        for source in alone)
        if blamed and rest:
            found += Unit(self.flags, self.directory, rest).findings(folder, number)
        return found


def grouped(sources):
    """Lists of sources whose anonymous namespaces define no name twice."""
    units = {}
    lines = subprocess.run(["awk", "-v", f"most={UNIT_SIZE}", "-f", "cmake/unity.awk", *sources],
                           check=True, capture_output=True, text=True).stdout.splitlines()
    for line in lines:
        unit, source = line.split(" ", 1)
        units.setdefault(unit, []).append(source)
    return units.values()


def main():
    build = os.path.abspath(sys.argv[1])
    folder = f"{build}/tidy"
    os.makedirs(folder, exist_ok=True)
    os.makedirs(CACHE, exist_ok=True)
    # Units are not below the sources' folders, so clang-tidy looks here for its checks.
    link = f"{folder}/.clang-tidy"
    if not os.path.lexists(link):
        os.symlink(os.path.abspath(".clang-tidy"), link)
    sources_of = commands(build, sys.argv[2:] or FOLDERS)
    if not sources_of:
        sys.exit(f"tidy.py: {build}/compile_commands.json has no source to check")

    units, known = [], 0
    for (flags, directory), sources in sources_of.items():
        new = [source for source in sources
               if not os.path.exists(os.path.join(CACHE, key_of(source, flags)))]
        known += len(sources) - len(new)
        if new:
            units += [Unit(flags, directory, group) for group in grouped(new)]
    units.sort(key=lambda unit: -len(unit.sources))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        outputs = list(pool.map(Unit.findings, units, [folder] * len(units), range(len(units))))
    found = "".join(outputs)
    print(found, end="")
    sources = sum(len(unit.sources) for unit in units)
    print(f"{sources} sources in {len(units)} units, {known} known to be clean: "
          f"{len(FINDING.findall(found))} findings")
    sys.exit(bool(found))


main()
