"""Two models that use the card in turn. The other one waits in host memory."""

import torch
from models import loss_of, texts, transformer

models = [transformer(layers=3, width=512).cpu(), transformer(layers=2, width=768).cpu()]
for turn in range(4):
    model = models[turn % 2].cuda()
    for text in texts(steps=2, batch=6, longest=256, shortest=64, seed=turn):
        loss_of(model, text).backward()
        model.zero_grad()
    model.cpu()
    if turn == 2:
        torch.cuda.empty_cache()
