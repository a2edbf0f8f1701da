"""Computes in float32. --autocast computes in bfloat16 by autocast. --bf16 also has parameters, gradients and
optimizer state in bfloat16. --batch N: sequences in a batch."""

import argparse

import torch
from training import optimizer_of, small_gpt, text, train_step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--autocast", action="store_true")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--batch", type=int, default=12)
    args = parser.parse_args()
    torch.manual_seed(1)
    model = small_gpt()
    if args.bf16:
        model = model.bfloat16()
    optimizer = optimizer_of(model)
    for _ in range(3):
        with torch.autocast("cuda", torch.bfloat16, enabled=args.autocast):
            train_step(model, optimizer, text(args.batch, 512))


if __name__ == "__main__":
    main()
