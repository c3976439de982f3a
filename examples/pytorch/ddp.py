"""Trains a small model with DistributedDataParallel on the CPU.

    torchrun --nproc-per-node 4 ddp.py --steps 20
"""

import argparse
import gc
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BATCH_PER_RANK = 32
SAVE_EVERY = 5


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--checkpoint", help="file to save to, and to resume from if it exists")
    parser.add_argument("--crash-rank", type=int, help="rank that raises, in the first attempt only")
    parser.add_argument("--crash-step", type=int, default=10)
    return parser.parse_args()


def save(path, step, model, optimizer):
    """Replaces the file as a whole: a reader finds the old or the new state."""
    temporary = f"{path}.tmp"
    state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    with open(temporary, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def resume(path, model, optimizer):
    """Returns the number of steps done."""
    if not path or not os.path.exists(path):
        return 0
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["step"]


def batch_of(step, rank):
    """Returns the same samples in every run: inputs and the sine of their sum."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    inputs = torch.rand(BATCH_PER_RANK, 8, generator=generator)
    return inputs, torch.sin(inputs.sum(dim=1, keepdim=True))


def train(args):
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    done = resume(args.checkpoint, model, optimizer)
    if done and rank == 0:
        print(f"resumed at step {done}", flush=True)
    # No rank may save before all have read the checkpoint.
    dist.barrier()
    ddp = DistributedDataParallel(model)

    for step in range(done + 1, args.steps + 1):
        if args.crash_rank == rank and args.crash_step == step:
            if int(os.environ.get("TORCHELASTIC_RESTART_COUNT") or 0) == 0:
                raise RuntimeError(f"rank {rank} crashes at step {step}, as asked")
        inputs, wanted = batch_of(step, rank)
        loss = nn.functional.mse_loss(ddp(inputs), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
            if args.checkpoint and (step % SAVE_EVERY == 0 or step == args.steps):
                save(args.checkpoint, step, model, optimizer)


def main():
    args = parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    try:
        train(args)
    finally:
        gc.collect()  # DDP is part of a cycle and must be freed before its process group
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
