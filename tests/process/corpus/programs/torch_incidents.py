#!/usr/bin/env python3
"""torch_incidents.py RANK WAY: training jobs with PyTorch, in which rank RANK fails or hangs by WAY; of
"judge", nothing is wrong."""
import ctypes
import math
import multiprocessing
import signal
import socket
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist

from common import RANK, SIZE, ready, wait_for_all
from torch_common import run, sums

culprit, way = int(sys.argv[1]), sys.argv[2]
is_culprit = RANK == culprit


def nan():
    """As scripts for masked autoencoders: each rank looks at its own loss."""
    for step in range(1000):
        loss = math.nan if is_culprit and step == 3 else 2.5
        if not math.isfinite(loss):
            print(f"Loss is {loss}, stopping training")
            sys.exit(1)
        sums(1)


def no_cuda():
    """On the node of the culprit, PyTorch was built without CUDA."""
    ready()
    wait_for_all()
    if RANK // 2 == culprit // 2:
        torch.ones(1, device="cuda")
    dist.init_process_group("gloo")
    sums(10)


def two_groups():
    """The culprit and the rank after it use two groups in opposite order."""
    pair = [culprit, culprit + 1]
    tensors, experts = dist.new_group(pair), dist.new_group(pair)
    sums(3)
    if RANK in pair:
        for group in (tensors, experts) if is_culprit else (experts, tensors):
            dist.all_reduce(torch.ones(100), group=group)
    sums(10)


def hold_the_interpreter():
    ctypes.PyDLL(None).sleep(3600)  # keeps the lock of the interpreter, as a faulty extension


def extension():
    sums(3)
    if is_culprit:
        threading.Thread(target=hold_the_interpreter).start()
    sums(10)


def scatter():
    """The culprit has a part too few."""
    sums(3)
    parts = [torch.ones(10)] * (SIZE - 1) if is_culprit else None
    dist.scatter(torch.empty(10), parts, src=culprit)
    sums(100000)


def engine():
    """A process that the culprit starts fails; it stops what it has, then raises."""
    sums(3)
    if is_culprit:
        text = ("import sys, os\nprint(f'(EngineCore_DP0 pid={os.getpid()}) Process EngineCore_DP0:', "
                "file=sys.stderr)\n{'hidden_size': 4096}['num_key_value_heads']")
        code = subprocess.run([sys.executable, "-c", text], check=False).returncode
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        dist.destroy_process_group()
        time.sleep(0.6)
        raise RuntimeError("Engine core initialization failed. See root cause above. "
                           f"Failed core proc(s): {{'EngineCore_DP0': {code}}}")
    sums(100000)


def fill(batches):
    for step in range(3):
        batches.put(step)


def producer():
    """The process that fills the culprit's queue has ended early, with success."""
    if not is_culprit:
        sums(10)
        return
    context = multiprocessing.get_context("fork")
    batches = context.Queue()
    helper = context.Process(target=fill, args=(batches,))
    helper.start()
    for _ in range(10):
        dist.all_reduce(torch.ones(100) * batches.get() * 0 + 1)


def serve(server):
    connection, _ = server.accept()
    while connection.recv(100):
        time.sleep(0.9)
        connection.sendall(b"score: 7")


def judge():
    """Nothing is wrong: rank RANK asks a server to judge six answers, which takes it a second each."""
    sums(3)
    if is_culprit:
        server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        client = socket.create_connection(server.getsockname())
        for _ in range(6):
            client.sendall(b"Judge this answer.")
            client.recv(100)
    dist.barrier()


WAYS = {
    "cuda": no_cuda,
    "engine": engine,
    "extension": extension,
    "groups": two_groups,
    "judge": judge,
    "nan": nan,
    "producer": producer,
    "scatter": scatter,
}

if __name__ == "__main__":
    run(WAYS[way], is_in_group=way != "cuda")
