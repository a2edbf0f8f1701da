"""Training of a transformer on batches of varying length."""

import torch
from models import loss_of, texts, transformer

model = transformer()
optimizer = torch.optim.AdamW(model.parameters())
for text in texts(steps=16, batch=8, longest=320, shortest=40):
    optimizer.zero_grad()
    loss_of(model, text).backward()
    optimizer.step()
