"""Lightning's Trainer."""

import lightning
import torch
import witness
from lightning.pytorch.callbacks import ModelCheckpoint


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
        self.first = None

    def training_step(self, batch, _):
        if self.first is None:
            self.first = self.global_step
        witness.die_at(self.global_step)
        return self.layer(batch).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


def train():
    witness.begin()
    lightning.seed_everything(0, verbose=False)
    model = Model()
    trainer = lightning.Trainer(
        accelerator="cpu", devices=2, strategy="ddp", max_steps=witness.STEPS, logger=False,
        enable_progress_bar=False, enable_model_summary=False,
        callbacks=[ModelCheckpoint(witness.FOLDER, every_n_train_steps=1, save_last=True)])
    data = torch.utils.data.DataLoader(torch.ones(1000, 4), batch_size=8)
    trainer.fit(model, data, ckpt_path="last")
    witness.end(model.first, trainer.global_step)


if __name__ == "__main__":
    train()
