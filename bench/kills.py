#!/usr/bin/env python3
"""Kills guardians, agents and nodes of running jobs, judges what rankrun says, and measures how soon
the job goes on.
Usage: bench/kills.py [--runs N] [--build FOLDER] [CASE...]

The jobs are cases of tests/process/corpus/cases.json whose workers, PyTorch among them, end as soon
as they lose a peer. A run is right if every event and report names the agent or the node as the
cause, no worker is blamed, and only an agent's death has used up a restart. The times are those from
the kill to the start of the next attempt on the last node. Exits 1 if a run is wrong.
"""
import argparse
import ctypes
import datetime
import importlib.util
import json
import os
import statistics
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CORPUS = os.path.join(ROOT, "tests", "process", "corpus")
CASES = ["C138", "C139", "C140", "C141", "C142", "C143", "C145", "C146", "C147"]


def load_corpus():
    spec = importlib.util.spec_from_file_location("corpus", os.path.join(CORPUS, "run.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


corpus = load_corpus()


class TimedRun(corpus.Run):
    last = None

    def start(self):
        self.killed_at = None
        TimedRun.last = self
        super().start()

    def pids(self, target):
        self.killed_at = time.time()  # the signal follows
        return super().pids(target)

    def close(self):
        self.gap = self.time_to_next_attempt()
        super().close()

    def time_to_next_attempt(self):
        """Seconds; None if nobody was killed, or no attempt has begun since."""
        if self.killed_at is None:
            return None
        starts = []
        for node in range(len(self.nodes)):
            if node in self.killed:
                continue
            times = [datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()
                     for event in self.events(node) if event["event"] == "attempt_started"]
            starts += [next((t for t in times if t > self.killed_at), None)]
        return None if None in starts else max(starts) - self.killed_at


def measure(case, bench, runs):
    """Returns how many runs were not wrong; prints one line, and each wrong run."""
    gaps, wrong = [], []
    for requirement in case.get("requires", []):
        try:
            bench.require(requirement)
        except corpus.Skip as reason:
            print(f"{case['id']}  skipped: {reason}", flush=True)
            return runs
    for _ in range(runs):
        block = corpus.run_case(case, bench)
        if block:
            wrong.append(block)
        if TimedRun.last.gap is not None:
            gaps.append(TimedRun.last.gap * 1000)
    times = "no next attempt"
    if gaps:
        times = f"{statistics.median(gaps):5.0f} {min(gaps):5.0f} {max(gaps):5.0f}"
    print(f"{case['id']}  {runs - len(wrong):3} of {runs}  {case['restarts']:8}  {times}  "
          f"{case['what']}", flush=True)
    for block in wrong:
        print(block, flush=True)
    return runs - len(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=50, help="of each case")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--venv", default=os.path.join(ROOT, "build", "venv"))
    parser.add_argument("ids", nargs="*", metavar="CASE", default=CASES)
    options = parser.parse_args()
    if ctypes.CDLL(None).prctl(corpus.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit("prctl failed")
    corpus.Run = TimedRun
    with open(os.path.join(CORPUS, "cases.json")) as file:
        cases = {case["id"]: case for case in json.load(file)}
    build = os.path.abspath(options.build)
    bench = corpus.Bench(build, os.path.join(build, "corpus"), os.path.abspath(options.venv))
    print("                       used         ms to the next attempt\n"
          "case      right    restarts  median   min   max", flush=True)
    right = sum(measure(cases[id], bench, options.runs) for id in options.ids)
    sys.exit(0 if right == options.runs * len(options.ids) else 1)


main()
