"""By fabric run."""

import os

import torch
import witness
from lightning.fabric import Fabric


def train():
    witness.begin()
    fabric = Fabric()
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model, optimizer = fabric.setup(model, optimizer)
    state = {"model": model, "optimizer": optimizer}
    first = witness.done_steps()
    path = os.path.join(witness.FOLDER, "state_{}")
    if first:
        fabric.load(path.format(first), state)
    for step in range(first, witness.STEPS):
        witness.die_at(step)
        fabric.backward(model(torch.ones(8, 4)).square().mean())
        optimizer.step()
        optimizer.zero_grad()
        fabric.save(path.format(step + 1), state)
        fabric.barrier()
        witness.note(step + 1)
    witness.end(first, witness.STEPS)


if __name__ == "__main__":
    train()
