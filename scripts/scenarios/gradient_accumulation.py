"""A step of 24 sequences in --parts parts. --sum-losses adds up the losses as tensors, which keeps the graph
of each loss."""

import argparse

import torch
from training import optimizer_of, small_gpt, text

BATCH = 24


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--sum-losses", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(1)
    model = small_gpt()
    optimizer = optimizer_of(model)
    for _ in range(3):
        total = 0
        for _ in range(args.parts):
            tokens = text(BATCH // args.parts, 512)
            loss = model(tokens[:, :-1], tokens[:, 1:]) / args.parts
            if args.sum_losses:
                total = total + loss
            else:
                loss.backward()
                total += loss.item()
        if args.sum_losses:
            total.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
