"""Calls of rankrun.distributed keep no memory. Usage: rankrun -n 2 leaks.py [CALLS]"""

import array
import sys

from rankrun import distributed as dist

MOST = 256  # KiB that the allocators may keep


def resident():
    """Returns the memory of this process in KiB."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def main(calls=100_000):
    dist.init_process_group()
    rank = dist.get_rank()
    data = array.array("d", [1, 2])
    lists = [[array.array("d", [0, 0]) for _ in range(2)], [None, None]]
    store = dist.HashStore()
    kinds = {
        "all_reduce": (1, lambda: dist.all_reduce(data, dist.ReduceOp.MAX)),
        "all_reduce, awaited": (2, lambda: dist.all_reduce(data, dist.ReduceOp.MAX, async_op=True).wait()),
        "all_gather": (2, lambda: dist.all_gather(lists[0], data)),
        "messages": (4, lambda: dist.send(data, 1) if rank == 0 else dist.recv(data, 0)),
        "objects": (10, lambda: dist.all_gather_object(lists[1], {"rank": [rank, "text"]})),
        "errors": (10, lambda: error_of(lambda: dist.all_reduce([1]))),
        "stores": (10, lambda: (store.set("key", "value"), store.get("key"))),
    }
    for name, (divisor, call) in kinds.items():
        for _ in range(calls // divisor // 10):
            call()
        dist.barrier()
        before = resident()
        for _ in range(calls // divisor):
            call()
        dist.barrier()
        grown = resident() - before
        if grown > MOST:
            raise AssertionError(f"{name}: {grown} KiB more after {calls // divisor} calls")
        print(f"{name}: {grown} KiB")
    dist.destroy_process_group()
    print("passed")


def error_of(call):
    try:
        call()
    except TypeError as error:
        return error
    raise AssertionError("no error")


main(*map(int, sys.argv[1:]))
