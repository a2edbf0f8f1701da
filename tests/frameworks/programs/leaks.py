"""Trains a small model on batches of different lengths for STEPS steps.

Of every step it keeps nothing, the loss alone (512 bytes), or the loss with its graph. It prints the step in
which memory ran out, or 0.
"""

import random
import sys

import torch
from torch import nn

KEEP, STEPS = sys.argv[1], int(sys.argv[2])
random.seed(1)
torch.manual_seed(0)
model = nn.Sequential(*(nn.Sequential(nn.Linear(512, 512), nn.GELU()) for _ in range(4))).cuda()
optimizer = torch.optim.AdamW(model.parameters())
kept = []


def train_step():
    length = 512 if KEEP == "graph" else random.randrange(2000, 40000)
    batch = torch.randn(length, 512).cuda()
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=KEEP == "graph")
    optimizer.step()
    if KEEP == "bare":
        kept.append(loss.detach())
    elif KEEP == "graph":
        kept.append(loss)


def main():
    for step in range(1, STEPS + 1):
        try:
            train_step()
        except torch.OutOfMemoryError:
            print(f"failed in step {step}", flush=True)
            raise
    print("failed in step 0")


if __name__ == "__main__":
    main()
