"""SFTTrainer of TRL."""

import of_transformers
import tokenizers
import transformers
import trl
import witness
from datasets import Dataset


def tokenizer():
    words = {"<pad>": 0, "<eos>": 1, **{str(number): number for number in range(2, 32)}}
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<eos>"))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=model, pad_token="<pad>", eos_token="<eos>", unk_token="<eos>")


def train():
    witness.begin()
    death = of_transformers.Death()
    data = Dataset.from_dict({"input_ids": [list(range(2, 10))] * 200})
    of_transformers.run(trl.SFTTrainer(
        of_transformers.tiny_model(), of_transformers.settings(trl.SFTConfig), train_dataset=data,
        processing_class=tokenizer(), callbacks=[death]), death)


if __name__ == "__main__":
    train()
