"""By accelerate: the file as a script, or train() by notebook_launcher."""

import os

import torch
import witness
from accelerate import Accelerator


def train():
    witness.begin()
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model, optimizer = accelerator.prepare(model, optimizer)
    first = witness.done_steps()
    folder = os.path.join(witness.FOLDER, "state_{}")
    if first:
        accelerator.load_state(folder.format(first))
    for step in range(first, witness.STEPS):
        witness.die_at(step)
        loss = model(torch.ones(8, 4)).square().mean()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        accelerator.save_state(folder.format(step + 1))
        accelerator.wait_for_everyone()
        witness.note(step + 1)
    witness.end(first, witness.STEPS)
    accelerator.end_training()


if __name__ == "__main__":
    train()
