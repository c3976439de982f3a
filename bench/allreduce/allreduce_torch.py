"""AllReduce of float32 by PyTorch's Gloo, under rankrun, as described in allreduce_peer.h."""

import json
import statistics
import sys
import time

import torch
import torch.distributed as dist

WARMUP_CALLS = 5
BATCH_SECONDS = 0.02
ENOUGH_TO_TELL = 0.1


def largest(value):
    tensor = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
    return tensor.item()


def seconds_of(calls, tensor):
    begin = time.perf_counter()
    for _ in range(calls):
        dist.all_reduce(tensor)
    return time.perf_counter() - begin


def filling_calls(tensor):
    calls = 1
    while True:
        took = largest(seconds_of(calls, tensor))
        if took >= BATCH_SECONDS * ENOUGH_TO_TELL:
            return max(1, round(calls * BATCH_SECONDS / took))
        calls *= 4


def measure(size, batches, limit):
    tensor = torch.full((size // 4,), float(dist.get_rank() + 1))
    dist.all_reduce(tensor)
    expected = dist.get_world_size() * (dist.get_world_size() + 1) / 2
    if not bool((tensor == expected).all()):
        sys.exit(f"allreduce_torch.py: {size} bytes: a sum is not {expected}")
    tensor.zero_()
    begin = time.perf_counter()
    seconds_of(WARMUP_CALLS, tensor)
    largest(0)
    calls = filling_calls(tensor)
    times = []
    while True:
        times.append(largest(seconds_of(calls, tensor)))
        if len(times) >= batches or largest(time.perf_counter() - begin) >= limit:
            break
    return {"us": statistics.median(times) / calls * 1e6, "calls": calls, "batches": len(times)}


def main():
    words = sys.argv[1:]
    options = {"--limit": "10", "--batches": "5"}
    while words and words[0] in options:
        options[words[0]] = words[1]
        words = words[2:]
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for size in map(int, words):
        figures = measure(size, int(options["--batches"]), float(options["--limit"]))
        if dist.get_rank() == 0:
            line = {"name": "torch", "ranks": dist.get_world_size(), "bytes": size, **figures}
            print(json.dumps(line), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
