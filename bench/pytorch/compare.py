"""The backends rankrun and gloo of torch.distributed side by side. See pytorch.sh.

The backends take turns; a figure is the median of its rounds, and a ratio the median of theirs.
"""

import collections
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import comparison
from comparison import Failed

RANKRUN = "build/release/bin/rankrun"
WORKER = str(Path(__file__).parent / "worker.py")
BACKENDS = ("rankrun", "gloo")
KIB, MIB = 1 << 10, 1 << 20
SIZES = (8, KIB, 64 * KIB, MIB, 8 * MIB, 64 * MIB)
DISPATCH_US = 5
JOB_SECONDS = 300

# Name, ranks, arguments of the worker, RANKRUN_BACKEND, and the target of the ratio by size.
JOBS = (
    ("all_reduce", 2, ("allreduce", *SIZES), "", lambda size: 5),
    ("all_reduce", 4, ("allreduce", *SIZES), "", lambda size: 5 if size <= MIB else 4),
    ("async", 2, ("async", *SIZES), "", lambda size: 5),
    ("all_reduce, tcp", 2, ("allreduce", *SIZES), "tcp", lambda size: 1.1),
    ("DDP step, 10 M", 2, ("ddp", 10), "", lambda _: 1.35),
    ("DDP step, 10 M", 4, ("ddp", 10), "", lambda _: 1.35),
    ("DDP step, 100 M", 2, ("ddp", 100), "", lambda _: 1.25),
)


def measure(backend, ranks, words, transport):
    """Returns the figures of a job, in microseconds by name."""
    command = [RANKRUN, "-n", str(ranks), WORKER, backend, *map(str, words)]
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    if transport:
        environment["RANKRUN_BACKEND"] = transport
    job = subprocess.run(command, env=environment, capture_output=True, text=True,
                         timeout=JOB_SECONDS)
    lines = [line.partition("{")[1:] for line in job.stdout.splitlines() if "{" in line]
    figures = {line["name"]: line["us"] for line in (json.loads("".join(each)) for each in lines)}
    if job.returncode != 0 or not figures:
        raise Failed(f"{' '.join(command)}: exit code {job.returncode}\n{job.stdout}{job.stderr}")
    return figures


def size_text(name):
    if not name.isdigit():
        return ""
    size = int(name)
    if size >= MIB:
        return f", {size // MIB} MiB"
    return f", {size // KIB} KiB" if size >= KIB else f", {size} B"


def compare_job(job, rounds):
    name, ranks, words, transport, target = job
    times = {backend: collections.defaultdict(list) for backend in BACKENDS}
    for _ in range(rounds):
        for backend in BACKENDS:
            for size, us in measure(backend, ranks, words, transport).items():
                times[backend][size].append(us)
    for size in times["rankrun"]:
        own, gloo = (times[backend][size] for backend in BACKENDS)
        ratio = statistics.median(theirs / ours for ours, theirs in zip(own, gloo))
        least = target(int(size)) if size.isdigit() else target(size)
        figures = f"{statistics.median(own):.1f} us, gloo {statistics.median(gloo):.1f}"
        comparison.judge(f"{name}{size_text(size)}, {ranks} ranks: {figures}", f"{ratio:.2f}x",
                         f">= {least}", ratio >= least)


def compare(arguments):
    rounds = 1 if arguments.quick else arguments.rounds
    import torch

    print(f"PyTorch {torch.__version__}, {rounds} rounds")
    for job in JOBS[:1] if arguments.quick else JOBS:
        if arguments.only in job[0]:
            compare_job(job, rounds)
    own = [measure("rankrun", 1, ("dispatch",), "")["8"] for _ in range(rounds)]
    gloo = [measure("gloo", 1, ("dispatch",), "")["8"] for _ in range(rounds)]
    us = statistics.median(own)
    comparison.judge(f"dispatch, 8 B, 1 rank: gloo {statistics.median(gloo):.1f} us", f"{us:.1f} us",
                     f"< {DISPATCH_US}", us < DISPATCH_US)


def add_options(parser):
    parser.add_argument("--rounds", type=int, default=3, help="of each job (default: 3)")
    parser.add_argument("--newest", action="store_true", help="PyTorch of build/venv-newest")
    parser.add_argument("--only", default="", help="only jobs with this text in their names")


comparison.run("pytorch.sh", __doc__, compare, add_options)
