"""Accumulated gradients, and a validation without gradients between the steps."""

import torch
from models import loss_of, texts, transformer

model = transformer(layers=3)
optimizer = torch.optim.AdamW(model.parameters())
for epoch in range(3):
    for number, text in enumerate(texts(6, batch=4, longest=256, shortest=64, seed=epoch)):
        loss_of(model, text).backward()
        if number % 2:
            optimizer.step()
            optimizer.zero_grad()
    with torch.no_grad():
        losses = [loss_of(model, text) for text in texts(2, batch=24, longest=200 + 40 * epoch)]
    torch.cuda.empty_cache()
