"""The model that jobs of several ranks train: residual blocks, large enough that a small card decides whether
it fits."""

import torch
from torch import nn

WIDTH = 1024
ROWS = 512  # of a batch
STEPS = 3


class Block(nn.Module):
    def __init__(self, device="cuda"):
        super().__init__()
        self.inner = nn.Linear(WIDTH, 2 * WIDTH, device=device)
        self.outer = nn.Linear(2 * WIDTH, WIDTH, device=device)

    def forward(self, x):
        return self.outer(self.inner(x).relu()) + x


def blocks(count, device="cuda"):
    return nn.Sequential(*[Block(device) for _ in range(count)])


def train_step(model, optimizer):
    model(torch.randn(ROWS, WIDTH, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def train(model, optimizer=None):
    optimizer = optimizer or torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        train_step(model, optimizer)
        torch.distributed.barrier()
