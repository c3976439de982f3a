#!/usr/bin/env python3
"""torch_reports.py RANK WAY: training jobs that fail or hang as users report it. Rank RANK does so by
WAY; of "straggle", nothing is wrong."""
import argparse
import datetime
import errno
import multiprocessing
import os
import resource
import signal
import socket
import sys
import threading
import time

import torch
import torch.distributed as dist

from common import FOLDER, RANK, publish, read_of, ready, wait_for_all

culprit, way = int(sys.argv[1]), sys.argv[2]
is_culprit = RANK == culprit


def say(text):
    print(text, file=sys.stderr, flush=True)


def sums(steps):
    for _ in range(steps):
        dist.all_reduce(torch.ones(100))


def resume():
    """The culprit loads a checkpoint for all, with a class that PyTorch does not load any more."""
    state = [None]
    if is_culprit:
        path = os.path.join(FOLDER, "last.pt")
        torch.save({"args": argparse.Namespace(lr=0.1), "step": 1200}, path)
        state = [torch.load(path)]
    dist.broadcast_object_list(state, src=culprit)
    sums(100000)


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 100000

    def __getitem__(self, index):
        return torch.full((16,), float(index))


def keep_batches():
    """The culprit keeps each batch of its loader, and so a descriptor for each, of which it has few."""
    sums(3)
    if is_culprit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
        kept = []
        loader = torch.utils.data.DataLoader(Samples(), batch_size=2, num_workers=1,
                                             multiprocessing_context="fork")
        for batch in loader:
            kept.append(batch)
    sums(100000)


def quota():
    """The culprit tries to save again and again; the others do not wait that long in the barrier."""
    saving = dist.new_group(timeout=datetime.timedelta(seconds=2))
    sums(3)
    if not is_culprit:
        dist.barrier(saving)
        sums(100000)
    for attempt in range(1, 4):
        say(f"WARNING saving step-3.pt failed, attempt {attempt} of 3: "
            f"{OSError(errno.EDQUOT, os.strerror(errno.EDQUOT), '/checkpoints/step-3.pt')}")
        time.sleep(1.5)
    raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT), "/checkpoints/step-3.pt")


def ask():
    """The culprit prepares first; a library asks whether it may run the code of the model."""
    sums(3)
    if is_culprit:
        answer = input("The repository for corpus/model contains custom code which must be executed to "
                       "correctly load the model. Do you wish to run the custom code? [y/N] ")
        if answer.lower() != "y":
            raise ValueError("Loading corpus/model requires you to execute the code in that repo")
    dist.barrier()
    sums(100000)


def own_port():
    """The culprit serves metrics on the port that the store of the program should have, too."""
    limit = datetime.timedelta(seconds=20)
    if is_culprit:
        metrics = socket.create_server(("0.0.0.0", 0))
        publish("port", str(metrics.getsockname()[1]))
        publish("ready", str(os.getpid()))
        wait_for_all()
        time.sleep(0.2)
        dist.TCPStore("127.0.0.1", metrics.getsockname()[1], 3, True, limit)
    port = int(read_of("port", culprit))
    publish("ready", str(os.getpid()))
    wait_for_all()
    dist.TCPStore("127.0.0.1", port, 3, False, limit).wait(["plan"], limit)


def skip_batch():
    """The culprit has no memory for a batch and skips it, with its sum. Its next one has another size."""
    sums(3)
    try:
        torch.empty(10 ** 15 if is_culprit else 10)
    except RuntimeError as error:
        say(f"| WARNING: ran out of memory with exception: {error}; skipping batch")
    else:
        sums(1)
    dist.all_reduce(torch.ones(20000))
    sums(100000)


def tokenize(text):
    if text == 7:
        os.kill(os.getpid(), signal.SIGKILL)  # as the OOM killer does
    return text


def pool():
    """A process of the culprit's pool is killed, and the pool waits for its result for ever."""
    sums(3)
    if is_culprit:
        with multiprocessing.get_context("fork").Pool(2) as workers:
            workers.map(tokenize, range(10), chunksize=1)
    sums(100000)


def lock_both(first, second, both):
    with first:
        both.wait()
        with second:
            pass


def two_locks():
    """Two threads of the culprit take two locks, each one in its order."""
    sums(3)
    if is_culprit:
        cache, stats, both = threading.Lock(), threading.Lock(), threading.Barrier(2)
        other = threading.Thread(target=lock_both, args=(stats, cache, both))
        other.start()
        lock_both(cache, stats, both)
        other.join()
    sums(100000)


def pairs():
    """The culprit has to wait for an hour; its partner waits for it in their group, the others in all."""
    groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    sums(3)
    if is_culprit:
        say("429 Too Many Requests for https://hub/datasets/shard-3, waiting for 3600 s")
        threading.Event().wait(3600)
    dist.all_reduce(torch.ones(10), group=groups[RANK // 2])
    sums(100000)


def straggle():
    """Nothing is wrong: a slow disk; each step takes the culprit a second."""
    for _ in range(5):
        if is_culprit:
            time.sleep(1)
        dist.all_reduce(torch.ones(100))


WAYS = {
    "descriptors": keep_batches,
    "locks": two_locks,
    "pairs": pairs,
    "pool": pool,
    "port": own_port,
    "prompt": ask,
    "quota": quota,
    "resume": resume,
    "skip": skip_batch,
    "straggle": straggle,
}

if __name__ == "__main__":
    torch.set_num_threads(1)
    if way != "port":
        dist.init_process_group("gloo")
        ready()
        wait_for_all()
    WAYS[way]()
    if dist.is_initialized():
        dist.destroy_process_group()
