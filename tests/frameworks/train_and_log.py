"""Trains a small model without end and logs the address and size of each allocation to a file.

    train_and_log.py LOG

Each line is written after PyTorch has returned the tensor, so a trace must contain it.
"""

import os
import sys

import torch
from torch import nn

log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
model = nn.Sequential(*(nn.Linear(256, 256) for _ in range(4))).cuda()
optimizer = torch.optim.AdamW(model.parameters())
kept = []
step = 0
while True:
    step += 1
    batch = torch.empty(8 * (step % 97 + 1), 256, device="cuda")
    os.write(log, b"%x %d\n" % (batch.data_ptr(), batch.nbytes))
    output = model(batch)
    os.write(log, b"%x %d\n" % (output.data_ptr(), output.nbytes))
    kept.append(output.detach().clone())
    os.write(log, b"%x %d\n" % (kept[-1].data_ptr(), kept[-1].nbytes))
    if len(kept) > 50:
        kept.pop(step % 37)
    optimizer.zero_grad()
    output.sum().backward()
    optimizer.step()
