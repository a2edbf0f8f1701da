"""Lightning: a model that keeps the activations of each step in a list."""

import lightning
import torch

WIDTH = 2048


class Network(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            *[
                torch.nn.Sequential(
                    torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.GELU(), torch.nn.Linear(4 * WIDTH, WIDTH)
                )
                for _ in range(6)
            ]
        )
        self.kept = []

    def training_step(self, batch, _):
        hidden = self.layers[0](batch[0])
        self.kept.append(hidden)
        return self.layers[1:](hidden).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


def main():
    lightning.seed_everything(1)
    rows = torch.utils.data.TensorDataset(torch.randn(2048, WIDTH))
    lightning.Trainer(
        max_epochs=20,
        accelerator="gpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    ).fit(Network(), torch.utils.data.DataLoader(rows, batch_size=256))


if __name__ == "__main__":
    main()
