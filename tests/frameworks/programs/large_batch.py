"""Trains on batches, of which one is too large for the card. Argument "keep" keeps the exception.

Prints the bytes that the pool could return to the driver before the second step after the failure."""

import sys

import torch
from torch import nn


def step(model, optimizer, rows):
    batch = torch.randn(rows, 1024).cuda()
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def cached():
    return sum(
        segment["total_size"]
        for segment in torch.cuda.memory_snapshot()
        if all(block["state"] == "inactive" for block in segment["blocks"])
    )


def main():
    layers = (nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)) for _ in range(6))
    model = nn.Sequential(*layers).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    kept = []
    for number, rows in enumerate([2048] * 5 + [32768] + [512] * 4):
        if number == 7:
            print(cached())
        try:
            step(model, optimizer, rows)
        except torch.OutOfMemoryError as error:
            if "keep" in sys.argv:
                kept.append(error)


main()
