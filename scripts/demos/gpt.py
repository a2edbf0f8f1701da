#!/usr/bin/env python3
"""Trains a GPT on batches of varying length: a common program that fragments memory.

Plain PyTorch. With the default settings it has about 165 million parameters. The text is random, because only
the order of allocations matters here.
"""

import argparse
import random

import torch
from torch import nn
from torch.nn import functional

VOCABULARY = 50304


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.input = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        batch, length, width = x.shape
        query, key, value = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.input(x).split(width, dim=2)
        )
        x = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x.transpose(1, 2).reshape(batch, length, width)
        return self.dropout(self.output(x))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp_norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1)
        )

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class GPT(nn.Module):
    def __init__(self, layers, width, max_length):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Embedding(max_length, width)
        self.blocks = nn.ModuleList(Block(width, heads=width // 64) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, text, following):
        """The loss of predicting `following`, which is the text shifted by one token."""
        positions = torch.arange(text.shape[1], device=text.device)
        x = self.tokens(text) + self.positions(positions)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return functional.cross_entropy(logits.flatten(0, 1), following.flatten())


def batches(args):
    """Batches of `args.batch` sequences of similar length, padded to the longest of them."""
    choice = random.Random(args.seed)
    for _ in range(args.steps):
        longest = args.max_length
        if not args.fixed_length:
            longest = choice.randint(args.max_length // 8, args.max_length)
        yield torch.randint(VOCABULARY, (args.batch, longest + 1))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768, help="a multiple of 64")
    parser.add_argument("--batch", type=int, default=8, help="sequences in a batch")
    parser.add_argument("--max-length", type=int, default=1024, help="tokens of a sequence")
    parser.add_argument("--fixed-length", action="store_true", help="every batch at the maximum")
    parser.add_argument("--bf16", action="store_true", help="compute in bfloat16 (autocast)")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main():
    args = parse_arguments()
    torch.manual_seed(args.seed)
    model = GPT(args.layers, args.width, args.max_length).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    parameters = sum(p.numel() for p in model.parameters())
    print(
        f"GPT with {parameters / 1e6:.1f} M parameters, {args.batch} sequences of up to "
        f"{args.max_length} tokens, {args.steps} steps",
        flush=True,
    )

    for step, text in enumerate(batches(args), start=1):
        text = text.cuda()
        with torch.autocast("cuda", torch.bfloat16, enabled=args.bf16):
            loss = model(text[:, :-1], text[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 10 == 0 or step == args.steps:
            print(f"step {step:4d}  length {text.shape[1] - 1:4d}  loss {loss.item():.4f}", flush=True)

    mib = 2**20
    print(
        f"peak memory: {torch.cuda.max_memory_allocated() / mib:.0f} MiB allocated, "
        f"{torch.cuda.max_memory_reserved() / mib:.0f} MiB reserved"
    )


if __name__ == "__main__":
    main()
