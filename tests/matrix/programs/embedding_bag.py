"""Recommendation: large tables with sparse gradients, bags of changing length."""

import torch
from torch import nn

with torch.device("cuda"):
    tables = nn.ModuleList(
        nn.EmbeddingBag(rows, 64, mode="sum", sparse=True) for rows in (200_000, 50_000, 9_000)
    )
    top = nn.Sequential(nn.Linear(192, 512), nn.ReLU(), nn.Linear(512, 1))
optimizer = torch.optim.SGD([*tables.parameters(), *top.parameters()], lr=0.1)
for step in range(12):
    batch = 1024 + 512 * (step % 5)
    found = []
    for number, table in enumerate(tables):
        bag = torch.zeros(batch, 3 + (step * 7 + number) % 11, dtype=torch.long, device="cuda")
        found.append(table(bag))
    optimizer.zero_grad()
    top(torch.cat(found, dim=1)).mean().backward()
    optimizer.step()
