"""Activation checkpointing: each block computes its forward pass twice."""

import torch
from models import loss_of, texts, transformer
from torch.utils.checkpoint import checkpoint


def twice(block, x):
    return checkpoint(block, x, use_reentrant=False)


model = transformer(layers=6)
optimizer = torch.optim.AdamW(model.parameters())
for text in texts(steps=8, batch=8, longest=512, shortest=128, seed=4):
    optimizer.zero_grad()
    loss_of(model, text, run=twice).backward()
    optimizer.step()
