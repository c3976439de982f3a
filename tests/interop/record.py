"""A program under torch.distributed.elastic's @record, one rank of which raises."""

import os
import sys

import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record


@record
def main():
    dist.init_process_group("gloo")
    if dist.get_rank() == int(sys.argv[1]):
        raise ValueError("no such shard: 17")
    dist.barrier()  # the others wait here and lose their peer


if __name__ == "__main__":
    main()
