"""Round trips of rpc_sync, for rpc.sh; as rpc_rankrun.cc."""

import os
import sys
import time

import torch.distributed.rpc as rpc


def echo(text):
    return text


if __name__ == "__main__":
    rank = int(os.environ["RANK"])
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=2)
    if rank == 0:
        for _ in range(int(sys.argv[1])):
            count = int(sys.argv[2])
            began = time.monotonic()
            for _ in range(count):
                rpc.rpc_sync("worker1", echo, args=("x" * 64,))
            print(f"{(time.monotonic() - began) / count * 1e6:.2f}", flush=True)
    rpc.shutdown()
