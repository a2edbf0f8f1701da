"""A training on a card of which another job uses a part. --batch N: sequences in a batch. --adapt halves the
batch when memory runs out, as many trainers do."""

import argparse

import torch
from training import optimizer_of, small_gpt, text, train_step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--adapt", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(1)
    model = small_gpt()
    optimizer = optimizer_of(model)
    batch, steps = args.batch, 0
    while steps < 3:
        try:
            train_step(model, optimizer, text(batch, 512))
            steps += 1
        except torch.OutOfMemoryError:
            if not args.adapt or batch == 1:
                raise
            batch //= 2
            optimizer.zero_grad()
            print(f"out of memory, going on with {batch} sequences", flush=True)


if __name__ == "__main__":
    main()
