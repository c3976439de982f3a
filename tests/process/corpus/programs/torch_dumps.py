#!/usr/bin/env python3
"""torch_dumps.py RANK WAY: the ranks dump PyTorch's flight recorder while RANK does not come, as
NCCL's watchdog does before a time-out."""
import datetime
import os
import pickle
import sys
import threading
import time

import torch
import torch.distributed as dist

from common import RANK, publish, read_of, ready, wait_for_all
from torch_common import sums

culprit, way = int(sys.argv[1]), sys.argv[2]
is_culprit = RANK == culprit


def dump():
    content = torch._C._distributed_c10d._dump_fr_trace(True, False, False)
    path = os.environ["TORCH_FR_DUMP_TEMP_FILE"] + str(RANK)
    with open(path + ".new", "wb") as file:
        file.write(content)
    os.rename(path + ".new", path)
    return pickle.loads(content)["entries"]


def dump_during_call():
    while True:
        time.sleep(0.5)
        dump()


dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=5))
pair = dist.new_group([culprit, (culprit + 1) % dist.get_world_size()])
ready()
wait_for_all()
sums(3)
if is_culprit:
    while not all(call["retired"] for call in dump()):
        time.sleep(0.1)
    publish("dumped", "")
    time.sleep(60)
read_of("dumped", culprit)
threading.Thread(target=dump_during_call, daemon=True).start()
if way == "pair" and dist.get_rank(pair) >= 0:
    dist.all_reduce(torch.ones(4), group=pair)
sums(1)
