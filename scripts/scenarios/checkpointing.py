"""A deep model. --checkpoint computes each block again in the backward pass instead of keeping its
activations."""

import sys

import torch
from torch.utils.checkpoint import checkpoint
from training import optimizer_of, small_gpt, text, train_step


def main():
    torch.manual_seed(1)
    model = small_gpt(layers=12)
    if "--checkpoint" in sys.argv:
        for block in model.blocks:
            plain = block.forward
            block.forward = lambda x, plain=plain: checkpoint(plain, x, use_reentrant=False)
    optimizer = optimizer_of(model)
    for _ in range(3):
        train_step(model, optimizer, text(8, 512))


if __name__ == "__main__":
    main()
