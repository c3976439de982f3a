"""Unmodified PyTorch 1.13 over Gloo, and a step of data-parallel training."""
import datetime
import os

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
rank, size = dist.get_rank(), dist.get_world_size()
assert (rank, size) == (int(os.environ["RANK"]), 3), (rank, size)
assert dist.is_torchelastic_launched()

total = torch.full((1000,), float(rank + 1))
dist.all_reduce(total)
assert torch.equal(total, torch.full((1000,), 6.0)), total[0]

objects = [None] * size
dist.all_gather_object(objects, {"rank": rank})
assert objects == [{"rank": r} for r in range(size)], objects
dist.barrier()
dist.monitored_barrier()

# All ranks start from rank 0's weights, have their own data, and end with equal
# weights.
torch.manual_seed(rank)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
weights = [torch.empty(2, 8) for _ in range(size)]
dist.all_gather(weights, model.module.weight.detach())
assert all(torch.equal(each, weights[0]) for each in weights), weights

pair = dist.new_group([0, 2])
if rank in (0, 2):
    value = torch.tensor([rank])
    dist.all_reduce(value, group=pair)
    assert value.item() == 2
dist.barrier()
dist.destroy_process_group()
