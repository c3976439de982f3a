#!/usr/bin/env python3
"""torch_init.py RANK WAY: rank RANK does not meet the others in init_process_group."""
import datetime
import os
import sys
import time

import torch
import torch.distributed as dist

from common import RANK

culprit, way = int(sys.argv[1]), sys.argv[2]
timeout = datetime.timedelta(seconds=3)
if RANK == culprit:
    if way == "never":  # it fails on its own, before it has met anybody
        raise FileNotFoundError(2, "No such file or directory", "/data/train.bin")
    if way == "exit":
        os._exit(9)
    if way == "port":
        os.environ["MASTER_PORT"] = "1"
    if way == "world":
        os.environ["WORLD_SIZE"] = str(int(os.environ["WORLD_SIZE"]) + 1)
    if way == "backend":
        dist.init_process_group("no_such_backend")
    if way == "variable":
        del os.environ["MASTER_ADDR"]
dist.init_process_group("gloo", timeout=timeout)
if way == "barrier":
    if RANK == culprit:
        time.sleep(20)
    dist.monitored_barrier(timeout=timeout)
if way == "sum":
    if RANK == culprit:
        time.sleep(30)
    dist.all_reduce(torch.ones(10))
time.sleep(30)
