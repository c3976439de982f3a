"""Trainer of Transformers."""

import torch
import transformers
import witness
from transformers.trainer_utils import get_last_checkpoint


class Death(transformers.TrainerCallback):
    """Also knows the first step."""

    first = None

    def on_step_begin(self, args, state, control, **_):
        if self.first is None:
            self.first = state.global_step
        witness.die_at(state.global_step)


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, _):
        numbers = torch.arange(1, 9)
        return {"input_ids": numbers, "labels": numbers}


def tiny_model():
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=32, n_positions=16, n_embd=8, n_layer=1, n_head=1))


def settings(kind):
    return kind(
        output_dir=witness.FOLDER, max_steps=witness.STEPS, save_steps=1, use_cpu=True, ddp_backend="gloo",
        report_to="none", disable_tqdm=True, per_device_train_batch_size=2)


def run(trainer, death):
    trainer.train(resume_from_checkpoint=get_last_checkpoint(witness.FOLDER))
    witness.end(death.first, trainer.state.global_step)


def train():
    witness.begin()
    death = Death()
    run(transformers.Trainer(
        tiny_model(), settings(transformers.TrainingArguments), train_dataset=Numbers(), callbacks=[death]), death)


if __name__ == "__main__":
    train()
