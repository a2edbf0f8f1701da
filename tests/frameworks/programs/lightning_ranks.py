"""Started by torchrun: a training with Lightning. The argument is the strategy: ddp or fsdp."""

import sys

import lightning
import torch
from blocks import ROWS, STEPS, WIDTH, blocks

RANKS = 2


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = blocks(6, "cpu")

    def training_step(self, batch, number):
        loss = self.layers(batch).square().mean()
        self.log("loss", loss, sync_dist=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.trainer.model.parameters(), lr=1e-3)


def main():
    trainer = lightning.Trainer(
        accelerator="gpu",
        devices=RANKS,
        strategy=sys.argv[1],
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Model(), torch.utils.data.DataLoader(torch.randn(RANKS * STEPS * ROWS, WIDTH), ROWS))
    torch.cuda.synchronize()
    print(f"{trainer.global_rank} {trainer.global_step} steps\n", end="", flush=True)


main()
