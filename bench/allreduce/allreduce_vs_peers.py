"""AllReduce of float32 by rankrun beside its peers. See allreduce_vs_peers.sh.

The programs take turns, all sizes in each turn; a figure is the median of the turns, and a ratio the
median of the turns' ratios.
"""

import collections
import json
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

import comparison
from comparison import Failed

BIN = Path("build/release/bin")
PYTHON = Path(os.environ.get("RANKRUN_TEST_VENV", "build/venv")) / "bin/python"
CORES = 2  # all programs share these cores, the first of this machine
SIZES = [8, 64, 1024, 8192, 64 << 10, 1 << 20, 8 << 20, 64 << 20]
START_SECONDS = 30  # PyTorch needs the longest

PEERS = ["openmpi", "torch", "gloo"]
MPI_VARIANTS = {"mpi": [], "mpi-no-cma": ["--mca", "btl_vader_single_copy_mechanism", "none"]}

# Ranks, bytes, and the speed-up over the faster Open MPI variant.
TARGETS = [(2, size, 1.0) for size in SIZES if size <= 1 << 20] + [
    (2, 64 << 20, 4.0), (4, 8, 2.0), (4, 64 << 10, 3.5), (4, 64 << 20, 5.0)]
MOST_TIMES_THE_BOUND = 1.6  # two ranks, the largest size; see memory_bound.cc


class Plan:
    """Amount of measurement."""

    def __init__(self, quick):
        self.rounds = 1 if quick else 7
        self.batches = 1 if quick else 5
        self.limit = 0.2 if quick else 3  # seconds per size, after which no batch begins
        self.sizes = [size for size in SIZES if size <= 1 << 20] if quick else SIZES


def mpirun(ranks, flags):
    return [shutil.which("mpirun"), "--allow-run-as-root", "--oversubscribe", "--mca", "btl",
            "self,vader", "--mca", "oob_tcp_if_include", "lo", *flags, "-n", ranks,
            BIN / "allreduce_mpi"]


def rankrun(ranks, *program):
    return [BIN / "rankrun", "-n", ranks, "--no-python", *program]


def commands(ranks):
    """Returns the installed programs: {name: command}."""
    found = {"rankrun": rankrun(ranks, BIN / "allreduce_rankrun"),
             "gloo": rankrun(ranks, BIN / "allreduce_gloo")}
    if shutil.which("mpirun") and (BIN / "allreduce_mpi").exists():
        found |= {name: mpirun(ranks, flags) for name, flags in MPI_VARIANTS.items()}
    if PYTHON.exists():
        found["torch"] = rankrun(ranks, PYTHON, "bench/allreduce/allreduce_torch.py")
    if ranks == 2:
        found["bound"] = [BIN / "memory_bound"]
    return found


def run(command, plan):
    """Runs one program. Returns {bytes: microseconds} of the completed sizes, and the error."""
    words = [*command, "--limit", plan.limit, "--batches", plan.batches, *plan.sizes]
    limit = START_SECONDS + len(plan.sizes) * 2 * (plan.limit + 1)
    with tempfile.TemporaryDirectory() as folder:
        variables = os.environ | {"RANKRUN_BENCH_FOLDER": folder, "RANKRUN_BACKEND": "shm",
                                  "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        with subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.PIPE, env=variables) as process:
            try:
                out, err = process.communicate(timeout=limit)
                trouble = err.strip() or f"exit code {process.returncode}"
            except subprocess.TimeoutExpired:
                # Launchers end their workers at SIGTERM; at SIGKILL the workers
                # would remain.
                process.terminate()
                try:
                    out, _ = process.communicate(timeout=10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    out, _ = process.communicate()
                trouble = f"has not ended within {limit:.0f} s"
    lines = [json.loads(line[line.index("{"):]) for line in out.splitlines() if "{" in line]
    return ({line["bytes"]: line["us"] for line in lines},
            "" if process.returncode == 0 else trouble)


def measure(ranks, plan):
    """Returns {name: {bytes: [microseconds of each round]}}, with None for a missing figure."""
    figures = collections.defaultdict(lambda: {size: [] for size in plan.sizes})
    for _ in range(plan.rounds):
        for name, command in commands(ranks).items():
            times, trouble = run(command, plan)
            if trouble and name == "rankrun":
                raise Failed(f"measure rankrun, {ranks} ranks: {trouble}")
            if trouble:
                print(f"  note: {name}, {ranks} ranks: {trouble.splitlines()[-1]}", flush=True)
            for size in plan.sizes:
                figures[name][size].append(times.get(size))
    variants = [figures[name] for name in MPI_VARIANTS if name in figures]
    if variants:
        figures["openmpi"] = {size: best(variants, size) for size in plan.sizes}
    return figures


def best(variants, size):
    """Returns the rounds of the variant with the lower median."""
    return min((variant[size] for variant in variants),
               key=lambda rounds: median(rounds) or float("inf"))


def median(rounds):
    known = [value for value in rounds if value is not None]
    return statistics.median(known) if known else None


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


def print_table(ranks, figures, sizes):
    names = [name for name in ["rankrun", *MPI_VARIANTS, "torch", "gloo", "bound"]
             if name in figures]
    peers = [peer for peer in PEERS if peer in figures]
    print(f"\n== {ranks} ranks: microseconds, then how many times faster rankrun is")
    print(f"{'size':>8}", *(f"{name:>11}" for name in names),
          *(f"{'/' + peer:>9}" for peer in peers), f"{'of bound':>9}" if ranks == 2 else "")
    for size in sizes:
        print(f"{size_text(size):>8}", *(f"{text(median(figures[name][size])):>11}" for name in names),
              *(f"{text(ratio(figures, peer, 'rankrun', size), 3):>9}" for peer in peers),
              f"{text(ratio(figures, 'rankrun', 'bound', size), 3):>9}" if ranks == 2 else "")


def judge(what, measured, target, met):
    comparison.judge(what, text(measured, 3), target, None if measured is None else met(measured))


def print_summary(figures, sizes):
    print("\n== summary")
    for ranks, size, target in TARGETS:
        if size not in sizes:
            continue
        measured = ratio(figures[ranks], "openmpi", "rankrun", size)
        judge(f"{ranks} ranks, {size_text(size)}: the better Open MPI/rankrun", measured,
              f">= {target}", lambda r, target=target: r >= target)
    if sizes[-1] == SIZES[-1]:
        measured = ratio(figures[2], "rankrun", "bound", SIZES[-1])
        judge(f"2 ranks, {size_text(SIZES[-1])}: rankrun/bound", measured,
              f"<= {MOST_TIMES_THE_BOUND}", lambda r: r <= MOST_TIMES_THE_BOUND)


def compare(quick):
    plan = Plan(quick)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    for name in ["mpi", "torch"]:
        if name not in commands(2):
            print(f"skipped: {name}, which is not installed")
    figures = {}
    for ranks in (2, 4):
        figures[ranks] = measure(ranks, plan)
        print_table(ranks, figures[ranks], plan.sizes)
    print_summary(figures, plan.sizes)


if __name__ == "__main__":
    comparison.run("allreduce_vs_peers.sh", __doc__, compare)
