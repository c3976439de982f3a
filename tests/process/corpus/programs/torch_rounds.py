#!/usr/bin/env python3
"""torch_rounds.py RANK WAY: more training loops of users, in which rank RANK fails or hangs by WAY."""
import datetime
import fcntl
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from common import FOLDER, RANK, publish, read_of, wait_for_all
from torch_common import run, sums

culprit, way = int(sys.argv[1]), sys.argv[2]
is_culprit = RANK == culprit
logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)


def gather():
    """Each rank sends its statistics; those of the culprit have a lock in them."""
    sums(3)
    statistics = {"loss": 2.5, "lock": threading.Lock() if is_culprit else None}
    dist.all_gather_object([None] * dist.get_world_size(), statistics)


def load_weights():
    """The culprit has an old file. It leaves its group before its error is printed."""
    sums(3)
    model = torch.nn.Linear(8, 4)
    try:
        if is_culprit:
            model.load_state_dict(torch.nn.Linear(6, 4).state_dict())
    except RuntimeError:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        dist.destroy_process_group()
        time.sleep(0.5)
        raise
    sums(100000)


def make_mesh():
    """A mistake of the job: the mesh needs four ranks and there are three."""
    init_device_mesh("cpu", (2, 2))


def agree():
    """The ranks tell each other whether one has failed, and then all leave."""
    sums(3)
    failed = torch.zeros(1)
    try:
        if is_culprit:
            json.loads('{"prompt": "Hello", ')
    except ValueError:
        logging.exception("validation failed")
        failed += 1
    dist.all_reduce(failed)
    if failed.item() > 0:
        raise RuntimeError(f"validation failed on {int(failed.item())} rank(s), see their logs")


def debug():
    """A breakpoint that somebody has left in the program; the culprit has no terminal."""
    sums(3)
    if is_culprit:
        breakpoint()
    sums(100000)


def own_store():
    """The culprit has a store of its own for all. It is closed before the error is printed."""
    if is_culprit:
        store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        publish("store", str(store.port))
    else:
        port = int(read_of("store", culprit))
        store = dist.TCPStore("127.0.0.1", port, is_master=False)
    publish("ready", str(os.getpid()))
    wait_for_all()
    if is_culprit:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(0.3)
        del store
        time.sleep(0.6)
        json.loads('{"plan": [1, 2')
    store.wait(["plan"], datetime.timedelta(seconds=60))


def read_forever():
    path = os.path.join(FOLDER, "metrics.fifo")
    os.mkfifo(path)
    os.read(os.open(path, os.O_RDWR), 1)


def join_at_exit():
    """The main thread of the culprit has ended, with success, but a thread of it never does."""
    sums(3)
    if is_culprit:
        threading.Thread(target=read_forever).start()


def lock_the_cache():
    """A process that was left behind has the lock on the cache of the culprit's node."""
    sums(3)
    if is_culprit:
        path = os.path.join(FOLDER, "tokens.lock")
        command = f"echo locked >{FOLDER}/locked; exec sleep 3600"
        subprocess.Popen(["flock", path, "sh", "-c", command])
        while not os.path.exists(os.path.join(FOLDER, "locked")):
            time.sleep(0.01)
        with open(path, "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
    sums(7)


def evaluate():
    """Nothing is wrong: rank RANK computes for 5 s, the others wait for it in a barrier."""
    sums(3)
    end = time.monotonic() + 5
    while is_culprit and time.monotonic() < end:
        torch.ones(100, 100) @ torch.ones(100, 100)
    dist.barrier()


def accept():
    """The culprit waits for the connection of a server of data before it meets the others."""
    listener = socket.create_server(("127.0.0.1", 0))
    publish("ready", str(os.getpid()))
    if is_culprit:
        listener.accept()
    dist.init_process_group("gloo")
    sums(3)


WAYS = {
    "accept": accept,
    "agree": agree,
    "debug": debug,
    "evaluate": evaluate,
    "flock": lock_the_cache,
    "gather": gather,
    "join": join_at_exit,
    "mesh": make_mesh,
    "store": own_store,
    "weights": load_weights,
}

if __name__ == "__main__":
    run(WAYS[way], is_in_group=way not in ("accept", "store"))
