"""The same in bfloat16 by autocast, whose casts of the weights are cached per step."""

import torch
from models import loss_of, texts, transformer

model = transformer(layers=5)
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
for text in texts(steps=12, batch=8, longest=512, shortest=64, seed=2):
    optimizer.zero_grad()
    with torch.autocast("cuda", torch.bfloat16):
        loss = loss_of(model, text)
    loss.backward()
    optimizer.step()
