"""Small models shared by the programs of this folder. Parameters are created directly on the GPU."""

import random

import torch
from torch import nn

MIB = 2**20
WORDS = 8192


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.heads = width // 64
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.input, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.input(self.first(x)).split(width, dim=2)
        query, key, value = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.output(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.second(x))


class Transformer(nn.Module):
    def __init__(self, layers=4, width=512):
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.head = nn.Linear(width, WORDS, bias=False)

    def forward(self, text, run=lambda block, x: block(x)):
        x = self.words(text)
        for block in self.blocks:
            x = run(block, x)
        return self.head(x)


def transformer(**shape):
    torch.manual_seed(0)
    with torch.device("cuda"):
        return Transformer(**shape)


def texts(steps, batch, longest, shortest=None, seed=1):
    """Batches with texts of one length each, between `shortest` and `longest` tokens."""
    choice = random.Random(seed)
    for _ in range(steps):
        length = choice.randint(shortest or longest, longest)
        yield torch.zeros(batch, length, dtype=torch.long, device="cuda")


def loss_of(model, text, **how):
    logits = model(text, **how)
    return nn.functional.cross_entropy(logits.flatten(0, 1), text.flatten())


def tensor(byte_count):
    return torch.empty(byte_count, dtype=torch.uint8, device="cuda")
