#!/usr/bin/env python3
"""torch_more.py RANK WAY: training loops of users, in which rank RANK fails or hangs by WAY."""
import logging
import os
import signal
import subprocess
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

from common import FOLDER, RANK
from torch_common import run, sums

culprit, way = int(sys.argv[1]), sys.argv[2]
is_culprit = RANK == culprit
logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)


class Data(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        if is_culprit and index == 5 and way == "loader-hangs":  # as a file system that is gone
            path = os.path.join(FOLDER, "shard-5")
            os.mkfifo(path)
            os.read(os.open(path, os.O_RDWR), 1)
        if is_culprit and index == 5 and way == "loader-late":
            time.sleep(60)
        return torch.tensor([index])


class Branches(torch.nn.Module):
    """A model of which one rank skips a part, as with data of one kind only."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.second = torch.nn.Linear(4, 4)

    def forward(self, batch, skips):
        batch = self.first(batch)
        return batch.sum() if skips else self.second(batch).sum()


def load():
    for batch in DataLoader(Data(), num_workers=1, timeout=2 if way == "loader-late" else 0):
        dist.all_reduce(batch)
    sums(1)


def skip_branch():
    model = DistributedDataParallel(Branches())
    for step in range(20):
        model(torch.ones(2, 4), is_culprit and step >= 4).backward()


def resume():
    """All have a checkpoint on a disk of their own; that of the culprit is cut off."""
    path = os.path.join(FOLDER, f"checkpoint.{RANK}.pt")
    torch.save({"weights": torch.ones(10000)}, path)
    if is_culprit:
        os.truncate(path, 20000)
    sums(1)
    torch.load(path)
    dist.barrier()


def out_of_memory():
    """The error is logged, then the group is destroyed, and the end comes late."""
    try:
        sums(3)
        if is_culprit:
            raise torch.OutOfMemoryError(
                "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
                "79.10 GiB of which 1.12 GiB is free.")
        sums(100000)
    except torch.OutOfMemoryError:
        logging.exception("training failed at step 3")
        dist.destroy_process_group()
        time.sleep(0.5)
        sys.exit(1)


def recorded():
    """All use the decorator of torchrun: the victims write error files, and the culprit the last."""
    sums(3)
    if is_culprit:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        dist.destroy_process_group()
        time.sleep(0.6)
        raise ValueError("label 1000 is out of range: 1000 classes")
    sums(100000)


def crash(_index):
    os.kill(os.getpid(), signal.SIGSEGV)


def spawn():
    sums(3)
    if is_culprit:
        torch.multiprocessing.spawn(crash, nprocs=1)
    sums(100000)


def uneven():
    """The culprit has fewer batches, and waits in the barrier at the end."""
    sums(3 if is_culprit else 5)
    dist.barrier()


def other_collective():
    """With TORCH_DISTRIBUTED_DEBUG=DETAIL the ranks compare their calls."""
    sums(3)
    dist.barrier() if is_culprit else sums(1)


def upload():
    """The culprit waits for a program that never ends."""
    sums(3)
    if is_culprit:
        subprocess.run(["sleep", "3600"], check=True)
    dist.barrier()


WAYS = {
    "checkpoint": resume,
    "collective": other_collective,
    "loader-hangs": load,
    "loader-late": load,
    "out-of-memory": out_of_memory,
    "record": record(recorded),
    "spawn": spawn,
    "uneven": uneven,
    "unused": skip_branch,
    "upload": upload,
}

if __name__ == "__main__":
    run(WAYS[way])
