"""Trains a small model and keeps the loss of every step, with its graph."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(*(nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(6))).cuda()
optimizer = torch.optim.AdamW(model.parameters())
losses = []
for step in range(20):
    batch = torch.randn(512, 1024).cuda()
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    losses.append(loss)
