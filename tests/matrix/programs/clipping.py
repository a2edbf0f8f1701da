"""Gradient clipping by norm, which makes a temporary list of norms and scaled gradients."""

import torch
from models import loss_of, texts, transformer

model = transformer(layers=3, width=640)
optimizer = torch.optim.Adam(model.parameters(), amsgrad=True)
for text in texts(steps=10, batch=6, longest=300, shortest=30, seed=5):
    optimizer.zero_grad()
    loss_of(model, text).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=False)
    optimizer.step()
