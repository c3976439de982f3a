"""AllReduce of float32 by rankrun beside its peers. See allreduce_vs_peers.sh.

The programs take turns, all sizes in each turn; a figure is the median of the turns, and a ratio the
median of the turns' ratios.
"""

import collections
import dataclasses
import os
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
class Transport:
    """How ranks exchange data: the programs that differ by it, and the targets of rankrun."""

    backend: str  # RANKRUN_BACKEND
    mpi_variants: dict  # {name: flags of mpirun}; "openmpi" is the faster one
    limit: str  # name of the limit, which is measured with two ranks
    limit_program: str  # its source describes the limit
    rival: str  # "openmpi", or "best" for the fastest peer
    rival_text: str
    targets: list  # ranks, bytes, and the speed-up over the rival
    limit_bytes: int  # the size at which rankrun is compared with the limit
    most_times_the_limit: float


VADER = ["--mca", "btl", "self,vader"]
# Without ob1, Open MPI could choose a layer that ignores btl.
TCP = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"]

TRANSPORTS = {
    "shm": Transport(
        backend="shm",
        mpi_variants={
            "mpi": VADER,
            "mpi-no-cma": [*VADER, "--mca", "btl_vader_single_copy_mechanism", "none"]},
        limit="bound", limit_program="memory_bound",
        rival="openmpi", rival_text="the better Open MPI",
        targets=[(2, size, 1.0) for size in SIZES if size <= 1 << 20] + [
            (2, 64 << 20, 4.0), (4, 8, 2.0), (4, 64 << 10, 3.5), (4, 64 << 20, 5.0)],
        limit_bytes=64 << 20, most_times_the_limit=1.6),
    "tcp": Transport(
        backend="tcp",
        mpi_variants={"mpi-tcp": TCP},
        limit="pingpong", limit_program="tcp_pingpong",
        rival="best", rival_text="the best peer",
        targets=[(2, size, 1.0) for size in SIZES],
        limit_bytes=8, most_times_the_limit=1.3),
}


def mpirun(ranks, flags):
    return [shutil.which("mpirun"), "--allow-run-as-root", "--oversubscribe", "--mca",
            "oob_tcp_if_include", "lo", *flags, "-n", ranks, BIN / "allreduce_mpi"]


def rankrun(ranks, *program):
    return [BIN / "rankrun", "-n", ranks, "--no-python", *program]


def commands(transport, ranks):
    """Returns the installed programs: {name: command}."""
    found = {"rankrun": rankrun(ranks, BIN / "allreduce_rankrun"),
             "gloo": rankrun(ranks, BIN / "allreduce_gloo")}
    if shutil.which("mpirun") and (BIN / "allreduce_mpi").exists():
        found |= {name: mpirun(ranks, flags) for name, flags in transport.mpi_variants.items()}
    if PYTHON.exists():
        found["torch"] = rankrun(ranks, PYTHON, "bench/allreduce/allreduce_torch.py")
    if ranks == 2:
        found[transport.limit] = [BIN / transport.limit_program]
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


def measure(transport, ranks, plan):
    """Returns the figures of all programs, of "openmpi" and of "best"."""
    figures = collections.defaultdict(lambda: {size: [] for size in plan.sizes})
    for _ in range(plan.rounds):
        for name, command in commands(transport, ranks).items():
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
    names = [name for name in ["rankrun", *transport.mpi_variants, "torch", "gloo",
                               transport.limit] if name in figures]
    peers = [peer for peer in PEERS if peer in figures]
    of_limit = f"of {transport.limit}"
    print(f"\n== {ranks} ranks: microseconds, then how many times faster rankrun is")
    print(f"{'size':>8}", *(f"{name:>11}" for name in names),
          *(f"{'/' + peer:>9}" for peer in peers), f"{of_limit:>12}" if ranks == 2 else "")
    for size in sizes:
        print(f"{size_text(size):>8}",
              *(f"{text(median(figures[name][size])):>11}" for name in names),
              *(f"{text(ratio(figures, peer, 'rankrun', size), 3):>9}" for peer in peers),
              f"{text(ratio(figures, 'rankrun', transport.limit, size), 3):>12}"
              if ranks == 2 else "")


def print_summary(transport, figures, sizes):
    print("\n== summary")
    for ranks, size, target in transport.targets:
        if size in sizes:
            judge_at_least(f"{ranks} ranks, {size_text(size)}: {transport.rival_text}/rankrun",
                           ratio(figures[ranks], transport.rival, "rankrun", size), target)
    size = transport.limit_bytes
    if size in sizes:
        judge_at_most(f"2 ranks, {size_text(size)}: rankrun/{transport.limit}",
                      ratio(figures[2], "rankrun", transport.limit, size),
                      transport.most_times_the_limit)


def compare(arguments):
    transport = TRANSPORTS[arguments.transport]
    plan = Plan(arguments.quick)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    found = commands(transport, 2)
    for name in [*transport.mpi_variants, "torch"]:
        if name not in found:
            print(f"skipped: {name}, which is not installed")
    figures = {}
    for ranks in (2, 4):
        figures[ranks] = measure(transport, ranks, plan)
        print_table(transport, ranks, figures[ranks], plan.sizes)
    print_summary(transport, figures, plan.sizes)


def add_options(parser):
    parser.add_argument("--transport", choices=TRANSPORTS, default="shm",
                        help="how ranks exchange data; shm is the default")


if __name__ == "__main__":
    comparison.run("allreduce_vs_peers.sh", __doc__, compare, add_options)
