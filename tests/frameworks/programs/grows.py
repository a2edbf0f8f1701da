"""Three steps of a small training. With --keep each step's activations stay."""

import sys

import fragtrace
import torch

KEEP = "--keep" in sys.argv
kept = []


def step(model):
    with fragtrace.phase("step"):
        loss = model(torch.ones(1024, 1024, device="cuda")).sum()
        if KEEP:
            kept.append(loss)  # with its graph
        else:
            loss.backward()
            model.zero_grad()


def main():
    model = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.GELU()).cuda()
    for _ in range(3):
        step(model)
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
