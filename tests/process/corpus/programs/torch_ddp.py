#!/usr/bin/env python3
"""torch_ddp.py RANK WAY: training with DistributedDataParallel, in which rank RANK fails."""
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from common import RANK

culprit, way = int(sys.argv[1]), sys.argv[2]
torch.set_num_threads(1)
dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(4, 2))
for step in range(20):
    width = 5 if RANK == culprit and step == 4 and way == "width" else 4
    loss = model(torch.ones(3, width)).sum()
    if RANK == culprit and step == 4 and way == "target":
        loss = torch.nn.functional.cross_entropy(model(torch.ones(3, 4)), torch.tensor([0, 1, 9]))
    if RANK == culprit and step == 4 and way == "fewer":
        print("rank has no more batches", flush=True)
        raise StopIteration("epoch over after 4 of 20 batches")
    loss.backward()
dist.destroy_process_group()
