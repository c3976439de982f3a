#!/usr/bin/env python3
"""torch_survivor.py: an all-reduce loop that fails as soon as a peer is lost. From the second
attempt on it ends with success after a few steps."""
import time

import torch
import torch.distributed as dist

from common import ATTEMPT, ready, wait_for_all

torch.set_num_threads(1)
dist.init_process_group("gloo")
ready()
wait_for_all()
for _ in range(5 if ATTEMPT > 0 else 100000):
    dist.all_reduce(torch.ones(10))
    time.sleep(0.01)
dist.destroy_process_group()
