"""Trains a sharded model with FSDP2 on the CPU, and resumes on any number of ranks.

    torchrun --nproc-per-node 4 --max-restarts 3 fsdp2.py --checkpoint FOLDER
"""

import argparse
import os

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

SAMPLES = 48  # of each step, over all ranks: the loss does not depend on their number
SAVE_EVERY = 5


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--checkpoint", required=True, help="folder to save to, and to resume from")
    parser.add_argument("--crash-rank", type=int, help="rank that raises, in the first attempt only")
    parser.add_argument("--crash-step", type=int, default=10)
    return parser.parse_args()


def make_model():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1))
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    return model


class Checkpoint:
    """A folder with one folder for each saved step, and a file that names the last complete one."""

    def __init__(self, folder, model, optimizer):
        self.folder = folder
        self.model = model
        self.optimizer = optimizer

    def save(self, step):
        """Each rank writes its shards."""
        model, optimizer = get_state_dict(self.model, self.optimizer)
        dcp.save({"model": model, "optimizer": optimizer}, checkpoint_id=self._path(step))
        if dist.get_rank() == 0:
            draft = os.path.join(self.folder, "last.tmp")
            with open(draft, "w") as file:
                file.write(str(step))
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, os.path.join(self.folder, "last"))

    def resume(self):
        """Returns the number of steps done. The shards may be those of another number of ranks."""
        try:
            with open(os.path.join(self.folder, "last")) as file:
                step = int(file.read())
        except FileNotFoundError:
            return 0
        model, optimizer = get_state_dict(self.model, self.optimizer)
        state = {"model": model, "optimizer": optimizer}
        dcp.load(state, checkpoint_id=self._path(step))
        set_state_dict(
            self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        return step

    def _path(self, step):
        return os.path.join(self.folder, f"step_{step}")


def batch_of(step):
    """Returns this rank's part of the samples of a step: inputs and the sine of their sum."""
    inputs = torch.rand(SAMPLES, 8, generator=torch.Generator().manual_seed(step))
    inputs = inputs.chunk(dist.get_world_size())[dist.get_rank()]
    return inputs, torch.sin(inputs.sum(dim=1, keepdim=True))


def train(args):
    rank = dist.get_rank()
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    checkpoint = Checkpoint(args.checkpoint, model, optimizer)
    done = checkpoint.resume()
    if done and rank == 0:
        print(f"resumed at step {done} on {dist.get_world_size()} ranks", flush=True)

    for step in range(done + 1, args.steps + 1):
        if args.crash_rank == rank and args.crash_step == step:
            if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
                raise RuntimeError(f"rank {rank} crashes at step {step}, as asked")
        inputs, wanted = batch_of(step)
        loss = nn.functional.mse_loss(model(inputs), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss = loss.detach()
        dist.all_reduce(loss)
        if rank == 0:
            print(f"step {step}: loss {loss.item() / dist.get_world_size():.4f}", flush=True)
        if step % SAVE_EVERY == 0 or step == args.steps:
            checkpoint.save(step)


def main():
    args = parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    train(args)
    dist.barrier()
    dist.destroy_process_group()
    # After FSDP on the CPU, PyTorch 2.13 sometimes aborts when it frees its static objects.
    os._exit(0)


if __name__ == "__main__":
    main()
