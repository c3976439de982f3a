"""FSDP on the CPU: both versions train like the same model in one process."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

STEPS = 5


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4))


def batch_of(step, rank):
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.rand(16, 8, generator=generator)


def train(model, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
    return model(batch_of(99, 0)).detach()


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    together = [torch.cat([batch_of(s, r) for r in range(size)]) for s in range(STEPS)]
    expected = train(make_model(), together)
    mine = [batch_of(step, rank) for step in range(STEPS)]

    sharded = make_model()
    mesh = init_device_mesh("cpu", (size,))
    for layer in sharded:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(sharded, mesh=mesh)
    torch.testing.assert_close(train(sharded, mine), expected)

    wrapped = FullyShardedDataParallel(make_model(), device_id=torch.device("cpu"))
    torch.testing.assert_close(train(wrapped, mine), expected)
    dist.barrier()
    dist.destroy_process_group()
    # On a loaded machine, PyTorch 2.13 sometimes aborts in its static destructors after
    # FSDP: "terminate called without an active exception".
    os._exit(0)


if __name__ == "__main__":
    main()
