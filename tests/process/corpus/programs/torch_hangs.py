#!/usr/bin/env python3
"""torch_hangs.py RANK WAY: an all-reduce loop in which rank RANK hangs at step 3 by WAY."""
import os
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist

from common import FOLDER, RANK, ready

culprit, way = int(sys.argv[1]), sys.argv[2]


def read_an_empty_fifo():
    path = os.path.join(FOLDER, "samples.fifo")
    os.mkfifo(path)
    os.read(os.open(path, os.O_RDWR), 1)


def spin():
    while True:
        pass


def lock_twice():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


WAYS = {
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "sleep": lambda: time.sleep(3600),
    "fifo": read_an_empty_fifo,
    "spin": spin,
    "lock": lock_twice,
}


def main():
    torch.set_num_threads(1)
    if way == "absent" and RANK == culprit:
        ready()
        time.sleep(3600)
    dist.init_process_group("gloo")
    ready()
    if way == "key":  # the culprit should set it, and waits for a receive instead
        store = dist.distributed_c10d._get_default_store()
        if RANK != culprit:
            store.get("vocabulary")
        else:
            time.sleep(3600)
    for step in range(10):
        if step == 3 and RANK == culprit and way in WAYS:
            WAYS[way]()
        dist.all_reduce(torch.ones(16))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
