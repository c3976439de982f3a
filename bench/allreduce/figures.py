"""Parts of allreduce_vs_peers.py and hierarchy.py: the amount of measurement, and the figures.

Figures are {name: {bytes: [microseconds of each round]}}, with None for a missing one.
"""

import json
import statistics

import comparison

SIZES = [8, 64, 1024, 8192, 16 << 10, 64 << 10, 128 << 10, 1 << 20, 8 << 20, 64 << 20,
         256 << 20]
START_SECONDS = 30  # PyTorch needs the longest


class Plan:
    """Amount of measurement."""

    def __init__(self, quick):
        self.rounds = 1 if quick else 7
        self.batches = 1 if quick else 5
        self.limit = 0.2 if quick else 3  # seconds per size, after which no batch begins
        self.sizes = [size for size in SIZES if size <= 1 << 20] if quick else SIZES

    def arguments(self):
        """Returns the arguments of a program; see allreduce_peer.h."""
        return ["--limit", self.limit, "--batches", self.batches, *self.sizes]

    def longest_seconds(self):
        """Returns the time after which a program hangs."""
        return START_SECONDS + len(self.sizes) * 2 * (self.limit + 1)


def times_of(output):
    """Returns {bytes: microseconds} of the sizes that a program completed."""
    lines = [json.loads(line[line.index("{"):]) for line in output.splitlines() if "{" in line]
    return {line["bytes"]: line["us"] for line in lines}


def median(rounds):
    known = [value for value in rounds if value is not None]
    return statistics.median(known) if known else None


def best(candidates, size):
    """Returns the rounds of the candidate with the lowest median."""
    return min((candidate[size] for candidate in candidates),
               key=lambda rounds: median(rounds) or float("inf"))


def ratio(figures, above, below, size):
    """Returns the median of the rounds' ratios, or None if one is missing."""
    if above not in figures or below not in figures:
        return None
    pairs = zip(figures[above][size], figures[below][size])
    return median([a / b if a and b else None for a, b in pairs])


def size_text(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def text(value, digits=4):
    if value is None:
        return "-"
    return f"{value:.{max(0, digits - len(str(int(value))))}f}"


def judge_at_least(what, measured, least):
    comparison.judge(what, text(measured, 3), f">= {least}",
                     None if measured is None else measured >= least)


def judge_at_most(what, measured, most):
    comparison.judge(what, text(measured, 3), f"<= {most}",
                     None if measured is None else measured <= most)
