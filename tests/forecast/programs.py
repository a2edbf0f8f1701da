"""Training loops whose last step is the largest, for forecasts of a step that ran out of memory.

programs.py NAME STEPS [SIZE] runs the first STEPS steps of a program. The last of them has another SIZE.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "matrix" / "programs"))

import torch
from models import loss_of, transformer
from torch import nn
from torch.utils.checkpoint import checkpoint


def tokens(batch, length):
    return torch.zeros(batch, length, dtype=torch.long, device="cuda")


def trained(model, optimizer=torch.optim.AdamW, **how):
    """A step on a batch with so many texts of so many tokens."""
    optimizer = optimizer(model.parameters())

    def step(batch, length):
        optimizer.zero_grad()
        loss_of(model, tokens(batch, length), **how).backward()
        optimizer.step()

    return step


def batch_growth():
    """The length stays the same, the batch grows."""
    step = trained(transformer())
    return lambda size: step(size, 256), (8, 8, 8, 8, 12)


def variable_lengths():
    step = trained(transformer())
    return lambda size: step(8, size), (160, 96, 192, 128, 224, 320)


def second_step():
    """The only complete step is the first, in which the optimizer allocates its state."""
    step = trained(transformer(layers=3))
    return lambda size: step(8, size), (192, 288)


def checkpointing():
    step = trained(transformer(layers=6), run=lambda block, x: checkpoint(block, x, use_reentrant=False))
    return lambda size: step(8, size), (192, 224, 160, 208, 448)


def mixed_precision():
    model = transformer(layers=5)
    optimizer = torch.optim.AdamW(model.parameters())

    def step(length):
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = loss_of(model, tokens(8, length))
        loss.backward()
        optimizer.step()

    return step, (192, 256, 128, 320, 448)


def accumulation():
    """Four forward and backward passes per step."""
    model = transformer(layers=3)
    optimizer = torch.optim.AdamW(model.parameters())

    def step(length):
        for _ in range(4):
            (loss_of(model, tokens(4, length)) / 4).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step, (192, 256, 128, 256, 448)


def cnn_sizes():
    with torch.device("cuda"):
        channels = (3, 32, 64, 128)
        layers = [
            layer
            for a, b in zip(channels, channels[1:], strict=False)
            for layer in (nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2))
        ]
        model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(side):
        images = torch.zeros(8, 3, side, side, device="cuda")
        labels = torch.zeros(8, dtype=torch.long, device="cuda")
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step, (96, 128, 64, 160, 208)


def two_models():
    """A generator and its discriminator, trained in turn within a step."""
    first, second = transformer(layers=2), transformer(layers=3)
    steps = trained(first), trained(second, torch.optim.SGD)

    def step(length):
        for one in steps:
            one(8, length)

    return step, (192, 256, 128, 256, 448)


def recurrent():
    """As many requests as tokens."""
    with torch.device("cuda"):
        cell, out = nn.GRUCell(512, 512), nn.Linear(512, 8192)
    optimizer = torch.optim.Adam([*cell.parameters(), *out.parameters()])

    def step(length):
        optimizer.zero_grad()
        state = torch.zeros(64, 512, device="cuda")
        loss = 0
        for _ in range(length):
            state = cell(state, state)
            loss = loss + out(state).mean()
        loss.backward()
        optimizer.step()

    return step, (24, 32, 16, 24, 48)


def kept_losses():
    """Steps of equal size. Each keeps its loss, and with it the inputs of its graph."""
    model = transformer(layers=3)
    optimizer = torch.optim.AdamW(model.parameters())
    kept = []

    def step(length):
        optimizer.zero_grad()
        logits = model(tokens(8, length))
        loss = logits.mean()
        loss.backward()
        kept.append(logits.detach())
        optimizer.step()

    return step, (256,) * 6


def main():
    name, steps = sys.argv[1], int(sys.argv[2])
    step, sizes = globals()[name]()
    for number, size in enumerate(sizes[:steps], start=1):
        last = number == steps and len(sys.argv) > 3
        step(int(sys.argv[3]) if last else size)


if __name__ == "__main__":
    main()
