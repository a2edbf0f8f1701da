"""A recurrent network unrolled over sequences of several lengths."""

import torch
from torch import nn

with torch.device("cuda"):
    cell, head = nn.GRUCell(256, 768), nn.Linear(768, 2000)
optimizer = torch.optim.RMSprop([*cell.parameters(), *head.parameters()])
for length in (20, 45, 12, 60, 33):
    state = torch.zeros(64, 768, device="cuda")
    outputs = []
    for _ in range(length):
        state = cell(torch.zeros(64, 256, device="cuda"), state)
        outputs.append(head(state))
    optimizer.zero_grad()
    torch.stack(outputs).square().mean().backward()
    optimizer.step()
