"""Training of a transformer, every batch of one length."""

import torch
from models import loss_of, texts, transformer

model = transformer()
optimizer = torch.optim.AdamW(model.parameters())
for text in texts(steps=8, batch=8, longest=256):
    optimizer.zero_grad()
    loss_of(model, text).backward()
    optimizer.step()
