"""Two networks against each other, each with its own optimizer."""

import torch
from torch import nn

with torch.device("cuda"):
    maker = nn.Sequential(
        nn.ConvTranspose2d(64, 256, 4),
        nn.ReLU(),
        nn.ConvTranspose2d(256, 128, 4, 2, 1),
        nn.ReLU(),
        nn.ConvTranspose2d(128, 3, 4, 2, 1),
        nn.Tanh(),
    )
    judge = nn.Sequential(
        nn.Conv2d(3, 128, 4, 2, 1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(128, 256, 4, 2, 1),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear(256 * 16, 1),
    )
optimizers = [torch.optim.Adam(net.parameters(), betas=(0.5, 0.99)) for net in (maker, judge)]
for step in range(10):
    batch = 96 + 40 * (step % 4)
    real = torch.zeros(batch, 3, 16, 16, device="cuda")
    made = maker(torch.zeros(batch, 64, 1, 1, device="cuda"))
    optimizers[1].zero_grad()
    (judge(real).mean() - judge(made.detach()).mean()).backward()
    optimizers[1].step()
    optimizers[0].zero_grad()
    judge(made).mean().backward()
    optimizers[0].step()
