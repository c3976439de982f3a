"""An unchanged PyTorch program, which notes when the first all_reduce of an attempt has ended."""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def note(path, first_sum):
    """Leaves a file with the pid, the time and the memory (PSS, KiB) of this rank."""
    with open("/proc/self/smaps_rollup") as lines:
        memory = next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    with open(path + ".tmp", "w") as file:
        file.write(f"{os.getpid()} {first_sum} {memory}")
    os.rename(path + ".tmp", path)


def main():
    folder = sys.argv[1]
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    total = torch.ones(1)
    dist.all_reduce(total)
    first_sum = time.monotonic()
    assert total.item() == dist.get_world_size()
    model(torch.ones(8, 64)).sum().backward()
    optimizer.step()
    note(f"{folder}/{os.environ['TORCHELASTIC_RESTART_COUNT']}.{dist.get_rank()}", first_sum)
    while True:
        dist.all_reduce(total)
        time.sleep(0.005)


main()
