"""Measures one backend of torch.distributed. Usage: worker.py BACKEND KIND [NUMBER...]

KIND: allreduce (numbers: bytes), async (the same, each call awaited at once), ddp (number: millions
of parameters), dispatch. Rank 0 prints a line of JSON for each figure: {"name", "us"}.
"""

import json
import statistics
import sys
import time

import torch
import torch.distributed as dist

BATCH_SECONDS = 0.05
BATCHES = 5
WIDTH = 1000  # of each layer of the model: a million parameters


def slowest(seconds):
    tensor = torch.tensor([seconds], dtype=torch.float64)
    dist.all_reduce(tensor, dist.ReduceOp.MAX)
    return tensor.item()


def median_of(call):
    """Returns the median time of a call over batches, in seconds; a batch takes that of its slowest rank."""

    def batch(calls):
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        return slowest(time.perf_counter() - begin)

    batch(3)
    calls, took = 4, 0
    while took < BATCH_SECONDS / 4:
        calls *= 4
        took = batch(calls) if calls > 16 else batch(4) * calls / 4
    calls = max(2, round(calls * BATCH_SECONDS / took))
    return statistics.median(batch(calls) / calls for _ in range(BATCHES))


def show(name, seconds):
    if dist.get_rank() == 0:
        print(json.dumps({"name": name, "us": seconds * 1e6}), flush=True)


def all_reduce(sizes, is_async):
    for size in sizes:
        tensor = torch.zeros(size // 4)
        if is_async:
            call = lambda: dist.all_reduce(tensor, async_op=True).wait()
        else:
            call = lambda: dist.all_reduce(tensor)
        show(str(size), median_of(call))


def ddp(millions):
    layers = [torch.nn.Linear(WIDTH, WIDTH) for _ in range(millions)]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers))
    data = torch.ones(4, WIDTH)

    def step():
        model.zero_grad()
        model(data).sum().backward()

    show(f"{millions} M", median_of(step))


def main(backend, kind, *numbers):
    torch.set_num_threads(1)
    dist.init_process_group(backend)
    numbers = [int(number) for number in numbers]
    if kind == "ddp":
        ddp(*numbers)
    elif kind == "dispatch":
        all_reduce([8], False)
    else:
        all_reduce(numbers, kind == "async")
    dist.destroy_process_group()


main(*sys.argv[1:])
