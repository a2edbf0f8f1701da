"""Gradients accumulated over four batches. The gradients stay allocated between steps."""

import torch
from models import loss_of, texts, transformer

model = transformer(layers=3)
optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
for number, text in enumerate(texts(steps=16, batch=4, longest=384, shortest=32, seed=3), start=1):
    (loss_of(model, text) / 4).backward()
    if number % 4 == 0:
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
