"""Rank 1 of an unmodified program sleeps while the others wait for it.

They wait in a collective, or for a key of the store.
"""

import os
import sys
import time

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    dist.barrier()
    if dist.get_rank() == 1:
        time.sleep(1000)
    if sys.argv[1] == "store":
        dist.distributed_c10d._get_default_store().get("answer")
    dist.all_reduce(torch.ones(1))


if __name__ == "__main__":
    main()
