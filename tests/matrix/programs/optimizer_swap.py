"""Adam's state leaves the card after each step and comes back before the next."""

import torch
from models import loss_of, texts, transformer

model = transformer(layers=4)
optimizer = torch.optim.Adam(model.parameters())


def move(to):
    for state in optimizer.state.values():
        for name in ("exp_avg", "exp_avg_sq"):
            state[name] = state[name].to(to)


for text in texts(steps=6, batch=6, longest=320, shortest=64, seed=9):
    optimizer.zero_grad()
    loss_of(model, text).backward()
    move("cuda")
    optimizer.step()
    move("cpu")
