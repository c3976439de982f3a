#!/usr/bin/env python3
"""torch_mishaps.py RANK WAY: training jobs with PyTorch, in which rank RANK fails or hangs by WAY; of
"compile", nothing is wrong."""
import errno
import logging
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist

from common import ATTEMPT, RANK, SIZE
from torch_common import run, sums

culprit, way = int(sys.argv[1]), sys.argv[2]
is_culprit = RANK == culprit
logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
log = logging.getLogger("train")


def parameters():
    """The model of the culprit has a layer more."""
    layers = [torch.nn.Linear(8, 8) for _ in range(3 if is_culprit else 2)]
    torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers))


def receives():
    """The culprit and the rank after it both receive from each other first."""
    sums(3)
    if RANK in (culprit, culprit + 1):
        other = 2 * culprit + 1 - RANK
        values = torch.ones(100)
        dist.recv(values, src=other)
        dist.send(values, dst=other)
    sums(10)


def prefetch():
    """The main thread of the culprit raises, but a thread that is no daemon keeps its process alive."""
    sums(3)
    if is_culprit:
        batches = queue.Queue()
        threading.Thread(target=batches.get).start()
        raise ValueError("batch 4 has 31 rows instead of 32")
    sums(10)


def pool():
    """In a pool of one thread, a task waits for another task of the same pool."""
    sums(3)
    if is_culprit:
        tasks = ThreadPoolExecutor(1)
        tasks.submit(lambda: tasks.submit(time.time).result()).result()
    sums(10)


def leave_early():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    dist.destroy_process_group()
    time.sleep(0.6)


def stale():
    """The culprit's file server has forgotten it; the others log what they have lost, and end."""
    sums(3)
    if is_culprit:
        leave_early()
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), "/mnt/nfs/run7/events.out.tfevents")
    try:
        sums(100000)
    except RuntimeError as error:
        log.error("training has failed in step 3: %s", error)
        sys.exit(13)


def partner():
    """Ranks exchange with a partner; the last one of an odd number has none."""
    sums(3)
    other = min(RANK ^ 1, SIZE - 1)
    mine, theirs = torch.ones(10), torch.empty(10)
    work = dist.batch_isend_irecv([dist.P2POp(dist.isend, mine, other),
                                   dist.P2POp(dist.irecv, theirs, other)])
    for one in work:
        one.wait()
    sums(100000)


def hub():
    """A download fails in the first attempt only."""
    sums(3)
    if is_culprit and ATTEMPT == 0:
        leave_early()
        raise ConnectionError("Couldn't reach 'rajpurkar/squad' on the Hub (LocalEntryNotFoundError)")
    sums(100000 if ATTEMPT == 0 else 10)


def build():
    """Nothing is wrong: rank RANK runs a compiler again and again, half a second each; the others wait."""
    sums(3)
    if is_culprit:
        for _ in range(8):
            subprocess.run([sys.executable, "-S", "-c",
                            "import time\nwhile time.process_time() < 0.5: pass"], check=True)
    dist.barrier()


WAYS = {
    "compile": build,
    "hub": hub,
    "parameters": parameters,
    "partner": partner,
    "pool": pool,
    "prefetch": prefetch,
    "receives": receives,
    "stale": stale,
}

if __name__ == "__main__":
    run(WAYS[way])
