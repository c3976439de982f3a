"""torch.distributed.checkpoint: each rank saves its part and loads it again, also
after the first attempt was lost in the middle."""

import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

ROWS = 16


def table(step):
    """Returns the whole tensor of a step, the same on all ranks."""
    return torch.arange(ROWS * 4, dtype=torch.float32).reshape(ROWS, 4) * step


def main():
    folder = sys.argv[1]
    first = int(os.environ["TORCHELASTIC_RESTART_COUNT"]) == 0
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    if first:
        state = {"table": distribute_tensor(table(3), mesh, [Shard(0)]), "step": 3}
        dcp.save(state, checkpoint_id=f"{folder}/3")
        saving = dcp.async_save(
            {"table": distribute_tensor(table(5), mesh, [Shard(0)]), "step": 5},
            checkpoint_id=f"{folder}/5")
        saving.result()
        dist.barrier()
        if dist.get_rank() == 1:
            os.abort()
        dist.barrier()  # fails, because a peer is lost
        sys.exit("the barrier ended without rank 1")
    for step in 3, 5:
        state = {"table": distribute_tensor(torch.zeros(ROWS, 4), mesh, [Shard(0)]), "step": 0}
        dcp.load(state, checkpoint_id=f"{folder}/{step}")
        assert state["step"] == step, state["step"]
        assert torch.equal(state["table"].full_tensor(), table(step)), step
    dist.barrier()
    dist.destroy_process_group()
    print("loaded the checkpoint of the first attempt", flush=True)
    os._exit(0)  # PyTorch's threads can abort a process that ends in the usual way


if __name__ == "__main__":
    main()
