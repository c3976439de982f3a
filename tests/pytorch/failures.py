"""Ends of jobs of the backend rankrun: each rank has an error that names the cause.

Usage: failures.py, with rankrun in PATH. It runs itself as the workers: rankrun -n 3 failures.py NAME.
"""

import os
import signal
import subprocess
import sys
import time

RANKS = 3
SOON = 10  # seconds; Gloo takes its time-out, 20 and more


def work(name):
    import torch
    import torch.distributed as dist

    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # by which the launcher ends a job that has failed
    dist.init_process_group("rankrun")
    rank = dist.get_rank()
    is_other = rank == RANKS - 1
    tensor = torch.ones(8)
    dist.all_reduce(tensor)
    began = time.monotonic()
    try:
        if name == "kill":
            if is_other:
                os.kill(os.getpid(), signal.SIGKILL)
            dist.all_reduce(tensor)
        elif name == "exception":
            if is_other:
                raise ValueError("no data")
            dist.all_reduce(tensor)
        elif name == "shape":
            dist.all_reduce(torch.ones(8 + is_other))
        elif name == "dtype":
            dist.all_reduce(tensor.double() if is_other else tensor)
        elif name == "kind":
            dist.all_reduce(tensor, dist.ReduceOp.MAX if is_other else dist.ReduceOp.SUM)
        elif name == "operation":
            dist.barrier() if is_other else dist.all_reduce(tensor)
        elif name == "size":
            outputs = [torch.zeros(8) for _ in range(RANKS)]
            dist.all_gather(outputs, torch.ones(7) if is_other else tensor)
    except dist.DistError as error:
        late = time.monotonic() - began > SOON
        print(f"{type(error).__name__}{' LATE' if late else ''}: {error}", flush=True)
    sys.exit(1)


def lines_of(name):
    """Returns the lines with an error, by rank."""
    command = ["rankrun", "-n", str(RANKS), os.path.abspath(__file__), name]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    lines = {}
    for line in ended.stdout.splitlines():
        place, _, text = line.partition("] ")
        if "DistBackendError" in text or "DistNetworkError" in text:
            lines[int(place[1:])] = text
    return lines, ended.stdout + ended.stderr


def main():
    others = f"rank {RANKS - 1}"
    cases = {
        "kill": (range(RANKS - 1), [others, "SIGKILL"]),
        "exception": (range(RANKS - 1), [others]),
        "shape": (range(RANKS), ["8 x float32", "9 x float32", others]),
        "dtype": (range(RANKS), ["8 x float32", "8 x float64", others]),
        "kind": (range(RANKS), ["sum", "max", others]),
        "operation": (range(RANKS), ["AllReduce", "Barrier", others]),
        "size": (range(RANKS), ["has 8 elements", "want 7", others]),
    }
    for name, (ranks, words) in cases.items():
        lines, output = lines_of(name)
        wrong = [rank for rank in ranks if any(w not in lines.get(rank, "") for w in words)]
        if wrong or any("LATE" in line for line in lines.values()):
            sys.exit(f"{name}: ranks {wrong}: want {words} in {lines}\n{output}")
        print(f"{name}: {lines[0]}")
    print("passed")


work(sys.argv[1]) if len(sys.argv) > 1 else main()
