"""A convolutional network on images whose size changes from batch to batch."""

import random

import torch
from torch import nn

with torch.device("cuda"):
    channels = (3, 32, 64, 128)
    layers = [
        layer
        for a, b in zip(channels, channels[1:], strict=False)
        for layer in (nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2))
    ]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
choice = random.Random(6)
for _ in range(14):
    side = choice.randrange(48, 208, 8)
    images = torch.zeros(8, 3, side, side, device="cuda")
    labels = torch.zeros(8, dtype=torch.long, device="cuda")
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
