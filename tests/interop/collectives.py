"""Unmodified PyTorch over Gloo: the operations of a program's first seconds."""
import datetime
import os

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
rank, size = dist.get_rank(), dist.get_world_size()
assert (rank, size) == (int(os.environ["RANK"]), 4), (rank, size)
assert dist.is_torchelastic_launched()

total = torch.full((1000,), float(rank + 1))
dist.all_reduce(total)
assert torch.equal(total, torch.full((1000,), 10.0)), total[0]

dist.barrier()
dist.monitored_barrier()

objects = [None] * size
dist.all_gather_object(objects, {"rank": rank})
assert objects == [{"rank": r} for r in range(size)], objects

pair = dist.new_group([0, 3])
if rank in (0, 3):
    value = torch.tensor([rank])
    dist.all_reduce(value, group=pair)
    assert value.item() == 3
dist.barrier()
dist.destroy_process_group()
