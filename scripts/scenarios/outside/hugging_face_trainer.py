"""Transformers: a randomly initialised GPT-2, trained by `Trainer` on texts of many lengths."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

WORDS = 32000


class Texts(torch.utils.data.Dataset):
    """Each group of eight consecutive texts has the same length."""

    def __len__(self):
        return 64

    def __getitem__(self, number):
        random = torch.Generator().manual_seed(number // 8)
        length = int(torch.randint(128, 1024, (1,), generator=random))
        words = torch.randint(0, WORDS, (length,), generator=random)
        return {"input_ids": words, "labels": words}


class InOrder(Trainer):
    def _get_train_sampler(self, *_, **__):
        return torch.utils.data.SequentialSampler(self.train_dataset)


def main():
    torch.manual_seed(1)
    model = GPT2LMHeadModel(GPT2Config(n_layer=8, n_embd=768, n_head=12, vocab_size=WORDS))
    InOrder(
        model=model,
        train_dataset=Texts(),
        args=TrainingArguments(
            per_device_train_batch_size=8,
            max_steps=8,
            bf16=True,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
        ),
    ).train()


if __name__ == "__main__":
    main()
