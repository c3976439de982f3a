#!/usr/bin/env python3
"""Runs clang-tidy on the sources of the libraries and programs.
Usage: scripts/tidy.py BUILD-FOLDER [PATH-PREFIX...]

BUILD-FOLDER: of the preset `clang`. PATH-PREFIX: only sources below it, for
example comm/rpc; default: all sources of compile_commands.json but bench and
examples.

Most of clang-tidy's time for one source goes into the standard headers, so 30
sources with the same flags are checked as one unit. Sources that cannot share a
unit (two define the same name in an anonymous namespace) are found by a
compilation first, and share others. The sources of a unit with a finding are
checked again alone. A unit without one is not checked again until a file of it
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
FOLDERS = ("base/", "store/", "agent/", "launcher/", "comm/", "cli/")
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

    def run(self, program, path, *last):
        result = subprocess.run([*program, path, *last], cwd=self.directory,
                                capture_output=True, text=True)
        return result.returncode, result.stdout + result.stderr

    def leave_clashing(self, folder, number):
        """Leaves out the sources that do not compile in this unit; returns them."""
        known = os.path.join(CACHE, self.hash(self.path(folder, number)) + ".clashing")
        if os.path.exists(known):
            with open(known) as file:
                left = [f"{os.getcwd()}/{source}" for source in json.load(file)]
            self.sources = [source for source in self.sources if source not in left]
            return left
        left = self.found_clashing(folder, number)
        with open(known, "w") as file:
            json.dump([os.path.relpath(source) for source in left], file)
        return left

    def found_clashing(self, folder, number):
        left = []
        while len(self.sources) > 1:
            status, output = self.run(["clang++", "-fsyntax-only", *self.flags],
                                      self.path(folder, number))
            if status == 0:
                break
            # The first source stays, so that each round checks more of them. An error in a
            # header does not say which source is its cause.
            others = set(self.sources[1:])
            blamed = set(FINDING.findall(output)) & others or others
            left += sorted(blamed)
            self.sources = [source for source in self.sources if source not in blamed]
        return left

    def hash(self, path):
        """Of all that decides what clang-tidy finds, but the headers of the system."""
        root = os.getcwd()
        status, rule = self.run(["clang++", "-MM", *self.flags], path)
        if status != 0:
            sys.exit(rule)
        files = [file for file in rule.replace("\\\n", " ").split()[1:] if file != path]
        digest = hashlib.sha256(versions())
        digest.update(" ".join(self.flags).replace(root, "").encode())
        for file in sorted(set(files) | set(self.sources)):
            with open(os.path.join(self.directory, file), "rb") as opened:
                digest.update(file.removeprefix(root).encode() + b"\0" + opened.read())
        return digest.hexdigest()

    def findings(self, folder, number):
        path = self.path(folder, number)
        known_as_clean = os.path.join(CACHE, self.hash(path))
        if os.path.exists(known_as_clean):
            return ""
        output = self.found_by_tidy(folder, number, path)
        if not output:
            open(known_as_clean, "w").close()
        return output

    def found_by_tidy(self, folder, number, path):
        status, output = self.run(["clang-tidy", "--quiet"], path, "--", *self.flags)
        if status == 0 or len(self.sources) == 1:
            return output if status else ""
        return "".join(Unit(self.flags, self.directory, [source]).findings(folder, number)
                       for source in self.sources) or output


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

    units = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        while sources_of:
            begin = len(units)
            for (flags, directory), sources in sources_of.items():
                units += [Unit(flags, directory, sources[i:i + UNIT_SIZE])
                          for i in range(0, len(sources), UNIT_SIZE)]
            new = units[begin:]
            left = pool.map(Unit.leave_clashing, new, [folder] * len(new),
                            range(begin, len(units)))
            sources_of = {}
            for unit, sources in zip(new, left):
                if sources:
                    sources_of.setdefault((unit.flags, unit.directory), []).extend(sources)
        outputs = list(pool.map(Unit.findings, units, [folder] * len(units), range(len(units))))
    found = "".join(outputs)
    print(found, end="")
    sources = sum(len(unit.sources) for unit in units)
    print(f"{sources} sources in {len(units)} units: {len(FINDING.findall(found))} findings")
    sys.exit(bool(found))


main()
