"""An ordinary PyTorch program, whose ranks a preloader forks: rankrun -n 2 --max-restarts 1 --preload auto.

Rank 1 is killed in attempt 0. Each rank checks that it has not imported PyTorch itself.
"""

import os
import signal
import sys

early = "torch._dynamo" in sys.modules

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset


def main():
    assert early, "torch was not imported by the preloader"
    rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    assert torch.get_num_threads() == int(os.environ["OMP_NUM_THREADS"]), torch.get_num_threads()
    dist.init_process_group("gloo")
    # Not at the end: PyTorch 2.13 dead-locks if Gloo's thread lets go of a tensor when the group ends.
    total = torch.ones(1)
    dist.all_reduce(total)
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters())
    data = TensorDataset(torch.arange(32.0).reshape(8, 4), torch.ones(8, 1))
    for inputs, targets in DataLoader(data, batch_size=2, num_workers=2):
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if attempt == 0 and rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
    print(f"rank {rank} of attempt {attempt}: {total.item():g} ranks")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
