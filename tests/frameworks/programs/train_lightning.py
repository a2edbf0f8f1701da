"""A small training with Lightning: two epochs of four batches, each with a validation.

Arguments: oom (a batch that no card can hold), figures FILE (the memory's figures, as the loggers get them).
"""

import json
import sys

import lightning
import torch
from fragtrace.lightning import MemoryCallback

OOM = "oom" in sys.argv
FIGURES = sys.argv[sys.argv.index("figures") + 1] if "figures" in sys.argv else None


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.Linear(512, 8))

    def training_step(self, batch, number):
        if OOM and number == 2:
            torch.empty(1 << 40, device=self.device)
        return self.layers(batch).sum()

    def validation_step(self, batch, number):
        self.layers(batch)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


class Notes(lightning.pytorch.loggers.Logger):
    """Keeps what the Trainer logs."""

    name = "notes"
    version = 0

    def __init__(self):
        super().__init__()
        self.rows = []

    def log_metrics(self, metrics, step=None):
        if any(name.startswith("gpu_memory/") for name in metrics):
            self.rows.append([step, metrics, torch.cuda.memory_allocated(), torch.cuda.memory_reserved()])

    def log_hyperparams(self, params, *arguments):
        pass


def main():
    data = torch.utils.data.DataLoader(torch.ones(64, 512), batch_size=16)
    notes = Notes()
    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cuda",
        devices=1,
        logger=notes if FIGURES else False,
        callbacks=[MemoryCallback(log=True, every=4) if FIGURES else MemoryCallback()],
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(Model(), data, data)
    if FIGURES:
        with open(FIGURES, "w") as file:
            json.dump(notes.rows, file)
    print("trained")


if __name__ == "__main__":
    main()
