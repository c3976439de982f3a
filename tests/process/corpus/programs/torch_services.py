#!/usr/bin/env python3
"""torch_services.py RANK WAY: training loops with what is around them: the store, RPC, checkpoints,
locks, threads and servers. Rank RANK fails or hangs by WAY."""
import datetime
import os
import queue
import signal
import socket
import sys
import threading
import time
import warnings

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch.distributed import rpc
from torch.utils.file_baton import FileBaton

from common import FOLDER, RANK, SIZE, publish, ready, wait_for_all, wait_long
from torch_common import run, sums

culprit, way = int(sys.argv[1]), sys.argv[2]
is_culprit = RANK == culprit
warnings.simplefilter("ignore")


def vocabulary():
    """The culprit makes a vocabulary for all; the others do not wait that long."""
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), SIZE,
                          is_master=False)
    sums(1)
    if is_culprit:
        wait_long()
    store.wait(["vocabulary"], datetime.timedelta(seconds=2))


def rescue():
    """A rank that loses a peer saves its state and ends with 0. The culprit fails late."""
    try:
        sums(3 if is_culprit else 100000)
    except RuntimeError as error:
        print(f"rank {RANK}: step failed ({error}); state is saved, leaving", file=sys.stderr)
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    dist.destroy_process_group()
    time.sleep(0.7)
    raise ZeroDivisionError("division by zero: 0 tokens in this batch")


def save():
    """The disk is full under the part of the culprit. Each rank gets the error of all."""
    folder = os.path.join(FOLDER, "step-3")
    sums(3)
    if is_culprit:
        os.mkdir(folder)
        os.symlink("/dev/full", os.path.join(folder, f"__{RANK}_0.distcp"))
    dist.barrier()
    checkpoint.save({f"weights.{RANK}": torch.ones(1000)}, checkpoint_id=folder)


def double(batch):
    return batch * 2


def crash(_batch):
    os.kill(os.getpid(), signal.SIGSEGV)


def call():
    """Rank 0 calls all others, of which the culprit crashes in the third call."""
    rpc.init_rpc(f"worker{RANK}", rank=RANK, world_size=SIZE)
    ready()
    wait_for_all()
    if RANK == 0:
        for step in range(20):
            for rank in range(1, SIZE):
                function = crash if step == 3 and rank == culprit else double
                rpc.rpc_sync(f"worker{rank}", function, args=(torch.ones(4),))
    rpc.shutdown()


def compile_extension():
    """The lock of a build that was killed is still there, on the node of the culprit."""
    publish("ready", str(os.getpid()))
    wait_for_all()
    path = os.path.join(FOLDER, f"lock.{RANK}")
    if is_culprit:
        with open(path, "w"):
            pass
    baton = FileBaton(path)
    if baton.try_acquire():
        baton.release()
    else:
        baton.wait()
    dist.init_process_group("gloo")
    sums(10)


def prefetch():
    """A thread of the culprit that fills a queue dies; its main thread waits for the next batch."""
    batches = queue.Queue(2)

    def fill():
        for step in range(10):
            if is_culprit and step == 3:
                raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
            batches.put(torch.ones(10))

    threading.Thread(target=fill, daemon=True).start()
    for _ in range(10):
        dist.all_reduce(batches.get())


def ask():
    """The culprit asks a server for its next batch, which takes the question and never answers."""
    server = socket.create_server(("127.0.0.1", 0))
    sums(3)
    if is_culprit:
        client = socket.create_connection(server.getsockname())
        client.sendall(b"GET /next HTTP/1.1\r\n\r\n")
        client.recv(1000)
    sums(7)


def groups():
    """The culprit does not make the group that the others make."""
    sums(3)
    if not is_culprit:
        dist.new_group(list(range(SIZE)))
    sums(7)


def once_more():
    """The culprit has one batch more. The others have come to their end, with success."""
    sums(4 if is_culprit else 3)
    if not is_culprit:
        os._exit(0)


WAYS = {
    "ask": ask,
    "baton": compile_extension,
    "groups": groups,
    "once-more": once_more,
    "prefetch": prefetch,
    "rescue": rescue,
    "rpc": call,
    "save": save,
    "vocabulary": vocabulary,
}

if __name__ == "__main__":
    run(WAYS[way], is_in_group=way not in ("baton", "rpc"))
