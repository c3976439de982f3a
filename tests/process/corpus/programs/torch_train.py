#!/usr/bin/env python3
"""torch_train.py RANK WAY [VICTIMS]: an all-reduce loop in which rank RANK fails at step 3.

The others are users' programs: the loss of a peer is an exception, exit code 1.
"""
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

from common import RANK, ready, wait_for_all

culprit, way = int(sys.argv[1]), sys.argv[2]
victims = sys.argv[3] if len(sys.argv) > 3 else ""


def fail_slowly():
    """The group is gone first; then comes a long traceback, and a long exit."""
    dist.destroy_process_group()
    time.sleep(0.5)
    print("Traceback (most recent call last):", file=sys.stderr, flush=True)
    time.sleep(0.2)
    print("ValueError: loss is nan at step 3", file=sys.stderr, flush=True)
    time.sleep(0.2)
    os._exit(1)


def fail():
    if way == "raise":
        raise ValueError("loss is nan at step 3")
    if way == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if way == "segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    if way == "exit":
        os._exit(3)
    if way == "system-exit":
        sys.exit("no more data on /data/shard-3")
    if way == "slow":
        fail_slowly()
    if way == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        fail_slowly()
    if way == "native":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        dist.destroy_process_group()
        time.sleep(0.5)
        os._exit(7)
    if way == "cuda":
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
    if way == "shape":
        torch.ones(3, 4) @ torch.ones(3, 4)
    if way == "once" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        raise ValueError("loss is nan at step 3")
    if way == "thread":
        import threading
        threading.Thread(target=lambda: os.kill(os.getpid(), signal.SIGABRT)).start()
        time.sleep(5)
    if way == "early":  # fewer batches than the others: a success for itself
        os._exit(0)


def interrupted(_signal, _frame):
    raise RuntimeError("interrupted while the checkpoint was written")


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    ready()
    wait_for_all()
    if victims == "handlers" and RANK != culprit:
        signal.signal(signal.SIGTERM, interrupted)
    if victims == "noisy":
        print("Connection refused, trying again", file=sys.stderr, flush=True)
    for step in range(6):
        if step == 3 and RANK == culprit:
            fail()
        dist.all_reduce(torch.ones(1000))
    if way != "once":  # a loss from outside: there is work left
        for _ in range(100000):
            dist.all_reduce(torch.ones(10))
            time.sleep(0.01)
    dist.destroy_process_group()


if __name__ == "__main__":
    if victims == "record":
        from torch.distributed.elastic.multiprocessing.errors import record
        main = record(main)
    main()
