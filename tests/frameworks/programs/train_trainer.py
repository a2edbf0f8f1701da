"""A small training with the Trainer of transformers: two epochs of four steps, each with an evaluation.

Arguments: oom (a batch that no card can hold), figures FOLDER (figures for TensorBoard).
"""

import sys
import tempfile

import fragtrace
import torch
from fragtrace.transformers import MemoryCallback
from transformers import Trainer, TrainingArguments

OOM = "oom" in sys.argv
FIGURES = sys.argv[sys.argv.index("figures") + 1] if "figures" in sys.argv else None


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.Linear(512, 8))
        self.calls = 0

    def forward(self, x, labels=None):
        self.calls += 1
        if OOM and self.calls == 3:
            torch.empty(1 << 40, device=x.device)
        out = self.layers(x)
        return {"loss": out.sum(), "logits": out}


def main():
    rows = [{"x": torch.ones(512), "labels": torch.zeros(())} for _ in range(64)]
    log = None
    if FIGURES:
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(FIGURES)
        log = fragtrace.loggers.tensorboard(writer)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            num_train_epochs=2,
            per_device_train_batch_size=16,
            per_device_eval_batch_size=16,
            eval_strategy="epoch",
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        trainer = Trainer(
            Model(),
            arguments,
            train_dataset=rows,
            eval_dataset=rows,
            callbacks=[MemoryCallback(log=log, every=4)],
        )
        trainer.train()
        trainer.evaluate()  # not planned
    if FIGURES:
        writer.close()
        print("allocated", torch.cuda.memory_allocated())
    print("trained")


if __name__ == "__main__":
    main()
