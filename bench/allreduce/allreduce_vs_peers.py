"""AllReduce of float32 by rankrun beside its peers. See allreduce_vs_peers.sh.

The programs take turns, all sizes in each turn; a figure is the median of the turns, and a ratio
the median of the turns' ratios.
"""

import collections
import contextlib
import dataclasses
import os
import random
import shutil
import subprocess
import tempfile
from pathlib import Path

import comparison
from comparison import Failed
from figures import (SIZES, Plan, best, judge_at_least, judge_at_most, median, ratio, size_text,
                     text, times_of)

BIN = Path("build/release/bin")
PYTHON = Path(os.environ.get("RANKRUN_TEST_VENV", "build/venv")) / "bin/python"
CORES = 2  # all programs share these cores, the first of this machine

PEERS = ["openmpi", "torch", "gloo"]


@dataclasses.dataclass(frozen=True)
class Limit:
    """A limit of the machine, measured with two ranks. The source of the program describes it."""

    program: list  # its words
    bytes: list  # the sizes at which rankrun is compared with it
    most_times: float


@dataclasses.dataclass(frozen=True)
class Transport:
    """How ranks exchange data: the programs that differ by it, and the targets of rankrun."""

    backend: str  # RANKRUN_BACKEND
    mpi_variants: dict  # {name: flags of mpirun}; "openmpi" is the faster one
    limits: dict  # {name: Limit}
    rival: str  # "openmpi", or "best" for the fastest peer
    rival_text: str
    targets: list  # ranks, bytes, and the speed-up over the rival


VADER = ["--mca", "btl", "self,vader"]
# Without ob1, Open MPI could choose a layer that ignores btl.
TCP = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"]

TRANSPORTS = {
    "shm": Transport(
        backend="shm",
        mpi_variants={
            "mpi": VADER,
            "mpi-no-cma": [*VADER, "--mca", "btl_vader_single_copy_mechanism", "none"]},
        limits={"bound": Limit(["memory_bound"], [64 << 20], 1.6),
                "exchange": Limit(["memory_exchange"], [64 << 10], 1.5)},
        rival="openmpi", rival_text="the better Open MPI",
        targets=[(2, size, 1.0) for size in SIZES if size <= 1 << 20] + [
            (2, 64 << 20, 4.0), (4, 8, 2.0), (4, 64 << 10, 3.5), (4, 64 << 20, 5.0)]),
    "tcp": Transport(
        backend="tcp",
        mpi_variants={"mpi-tcp": TCP},
        limits={"pingpong": Limit(["tcp_pingpong"], [8], 1.3),
                "stream": Limit(["tcp_pingpong", "--both-ways"], [64 << 20], 1.5)},
        rival="best", rival_text="the best peer",
        targets=[(ranks, size, 1.1) for ranks in (2, 4) for size in SIZES]),
}


def mpirun(ranks, flags):
    return [shutil.which("mpirun"), "--allow-run-as-root", "--oversubscribe", "--mca",
            "oob_tcp_if_include", "lo", *flags, "-n", ranks, BIN / "allreduce_mpi"]


def rankrun(ranks, *program):
    return [BIN / "rankrun", "-n", ranks, "--no-python", *program]


def commands(transport, ranks, before):
    """Returns the installed programs: {name: command}. `before`: see --before."""
    found = {"rankrun": rankrun(ranks, BIN / "allreduce_rankrun"),
             "gloo": rankrun(ranks, BIN / "allreduce_gloo")}
    if shutil.which("mpirun") and (BIN / "allreduce_mpi").exists():
        found |= {name: mpirun(ranks, flags) for name, flags in transport.mpi_variants.items()}
    if PYTHON.exists():
        found["torch"] = rankrun(ranks, PYTHON, "bench/allreduce/allreduce_torch.py")
    if before is not None:
        found["before"] = rankrun(ranks, before / "allreduce_rankrun")
    if ranks == 2:
        found |= {name: [BIN / limit.program[0], *limit.program[1:]]
                  for name, limit in transport.limits.items()}
    return found


def run(command, backend, plan):
    """Runs one program. Returns {bytes: microseconds} of the completed sizes, and the error."""
    words = [*command, *plan.arguments()]
    limit = plan.longest_seconds()
    with tempfile.TemporaryDirectory() as folder:
        variables = os.environ | {"RANKRUN_BENCH_FOLDER": folder, "RANKRUN_BACKEND": backend,
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
    return times_of(out), "" if process.returncode == 0 else trouble


def measure(transport, ranks, plan, before):
    """Returns the figures of all programs, of "openmpi" and of "best"."""
    figures = collections.defaultdict(lambda: {size: [] for size in plan.sizes})
    programs = list(commands(transport, ranks, before).items())
    for number in range(plan.rounds):
        # In another order each time, because each program leaves the machine to the next one.
        for name, command in random.Random(number).sample(programs, len(programs)):
            times, trouble = run(command, transport.backend, plan)
            if trouble and name == "rankrun":
                raise Failed(f"measure rankrun, {ranks} ranks: {trouble}")
            if trouble:
                print(f"  note: {name}, {ranks} ranks: {trouble.splitlines()[-1]}", flush=True)
            for size in plan.sizes:
                figures[name][size].append(times.get(size))
    add_best(figures, "openmpi", transport.mpi_variants, plan.sizes)
    add_best(figures, "best", PEERS, plan.sizes)
    return figures


def add_best(figures, name, candidates, sizes):
    """Adds the figures of the fastest candidate at each size, if one was measured."""
    measured = [figures[candidate] for candidate in candidates if candidate in figures]
    if measured:
        figures[name] = {size: best(measured, size) for size in sizes}


def print_table(transport, ranks, figures, sizes):
    limits = [name for name in transport.limits if name in figures]
    names = [name for name in ["rankrun", *transport.mpi_variants, "torch", "gloo", "before"]
             if name in figures] + limits
    slower = [name for name in [*PEERS, "before"] if name in figures]
    print(f"\n== {ranks} ranks: microseconds, then how many times faster rankrun is")
    print(f"{'size':>8}", *(f"{name:>11}" for name in names),
          *(f"{'/' + name:>9}" for name in slower), *(f"{'of ' + name:>12}" for name in limits))
    for size in sizes:
        print(f"{size_text(size):>8}",
              *(f"{text(median(figures[name][size])):>11}" for name in names),
              *(f"{text(ratio(figures, name, 'rankrun', size), 3):>9}" for name in slower),
              *(f"{text(ratio(figures, 'rankrun', name, size), 3):>12}" for name in limits))


def print_summary(transport, figures, sizes):
    print("\n== summary")
    for ranks, size, target in transport.targets:
        if size in sizes:
            judge_at_least(f"{ranks} ranks, {size_text(size)}: {transport.rival_text}/rankrun",
                           ratio(figures[ranks], transport.rival, "rankrun", size), target)
    for name, limit in transport.limits.items():
        for size in set(limit.bytes) & set(sizes):
            judge_at_most(f"2 ranks, {size_text(size)}: rankrun/{name}",
                          ratio(figures[2], "rankrun", name, size), limit.most_times)


def compare(arguments):
    transport = TRANSPORTS[arguments.transport]
    plan = Plan(arguments.quick)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    found = commands(transport, 2, arguments.before)
    for name in [*transport.mpi_variants, "torch"]:
        if name not in found:
            print(f"skipped: {name}, which is not installed")
    figures = {}
    for ranks in (2, 4):
        with loaded(arguments.loaded):
            figures[ranks] = measure(transport, ranks, plan, arguments.before)
        print_table(transport, ranks, figures[ranks], plan.sizes)
    print_summary(transport, figures, plan.sizes)


@contextlib.contextmanager
def loaded(is_loaded):
    """Keeps one of the cores busy meanwhile, if so asked."""
    if not is_loaded:
        yield
        return
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as load:
        try:
            yield
        finally:
            load.kill()


def add_options(parser):
    parser.add_argument("--transport", choices=TRANSPORTS, default="shm",
                        help="how ranks exchange data; shm is the default")
    parser.add_argument("--loaded", action="store_true",
                        help="another process keeps a core busy meanwhile")
    parser.add_argument("--before", type=Path, metavar="FOLDER",
                        help="the bin folder of an earlier build, to compare with")


if __name__ == "__main__":
    comparison.run("allreduce_vs_peers.sh", __doc__, compare, add_options)
