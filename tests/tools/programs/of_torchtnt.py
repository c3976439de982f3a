"""A unit of TorchTNT, by elastic_launch as in its documentation."""

import sys

import torch
import witness
from torch.distributed import launcher
from torchtnt.framework.auto_unit import AutoUnit
from torchtnt.framework.callback import Callback
from torchtnt.framework.callbacks import DistributedCheckpointSaver
from torchtnt.framework.train import train
from torchtnt.utils import init_from_env
from torchtnt.utils.test_utils import get_pet_launch_config


class Unit(AutoUnit):
    def compute_loss(self, state, data):
        out = self.module(data)
        return out.square().mean(), out

    def configure_optimizers_and_lr_scheduler(self, module):
        return torch.optim.SGD(module.parameters(), lr=0.01), None


class Death(Callback):
    first = None

    def on_train_step_start(self, state, unit):
        step = unit.train_progress.num_steps_completed
        if self.first is None:
            self.first = step
        witness.die_at(step)


def run():
    witness.begin()
    init_from_env()
    torch.manual_seed(0)
    unit, death = Unit(module=torch.nn.Linear(4, 1), strategy="ddp"), Death()
    saver = DistributedCheckpointSaver(witness.FOLDER, save_every_n_train_steps=1)
    DistributedCheckpointSaver.restore_from_latest(witness.FOLDER, unit)
    data = torch.utils.data.DataLoader(torch.ones(100, 4), batch_size=4)
    train(unit, data, max_steps=witness.STEPS, max_epochs=1, callbacks=[death, saver])
    witness.end(death.first, unit.train_progress.num_steps_completed)


if __name__ == "__main__":
    config = get_pet_launch_config(2)
    config.max_restarts = 1
    launcher.elastic_launch(config=config, entrypoint=run)(*sys.argv[1:])
