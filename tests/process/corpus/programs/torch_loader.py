#!/usr/bin/env python3
"""torch_loader.py RANK WAY: the DataLoader of rank RANK fails; the others wait for it in a sum."""
import os
import signal
import sys

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

from common import RANK

culprit, way = int(sys.argv[1]), sys.argv[2]


class Data(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        if RANK == culprit and index == 5:
            if way == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ValueError("sample 5 is broken")
        return torch.tensor([index])


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for batch in DataLoader(Data(), num_workers=1):
        dist.all_reduce(batch)
    dist.all_reduce(torch.ones(1))


if __name__ == "__main__":
    main()
