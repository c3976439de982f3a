"""DeepSpeed on the CPU."""

import deepspeed
import torch
import witness


def train():
    witness.begin()
    deepspeed.ops.__compatible_ops__.clear()  # its own operators would be compiled for minutes
    deepspeed.init_distributed("gloo")
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    engine, *_ = deepspeed.initialize(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
        config={"train_micro_batch_size_per_gpu": 8, "zero_optimization": {"stage": 0}})
    first = witness.done_steps()
    if first:
        engine.load_checkpoint(witness.FOLDER)
    for step in range(first, witness.STEPS):
        witness.die_at(step)
        engine.backward(engine(torch.ones(8, 4)).square().mean())
        engine.step()
        engine.save_checkpoint(witness.FOLDER)
        witness.note(step + 1)
    witness.end(first, witness.STEPS)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    train()
