"""Batches of changing sizes and lengths. --bucket N pads lengths to multiples of N. --longest-first begins
with the largest batch."""

import argparse
import random

import torch
from training import optimizer_of, small_gpt, text, train_step

LONGEST = 512
LARGEST = 12


def sizes(args):
    choice = random.Random(3)
    if args.longest_first:
        yield LARGEST, LONGEST
    for _ in range(16):
        batch, length = choice.randint(2, LARGEST), choice.randint(64, LONGEST)
        yield batch, min(LONGEST, -(-length // args.bucket) * args.bucket)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bucket", type=int, default=1)
    parser.add_argument("--longest-first", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(1)
    model = small_gpt()
    optimizer = optimizer_of(model)
    for batch, length in sizes(args):
        train_step(model, optimizer, text(batch, length))


if __name__ == "__main__":
    main()
