"""Convolutions, batch normalisation and an LSTM, forward and backward, with cuDNN asked for."""

import torch
from torch import nn
from torch.nn import functional as F

torch.backends.cudnn.enabled = True
torch.backends.cudnn.benchmark = True
model = nn.Sequential(
    nn.Conv2d(3, 32, 3, padding=1),
    nn.BatchNorm2d(32),
    nn.ReLU(),
    nn.Conv2d(32, 64, 3, stride=2, groups=2),
    nn.BatchNorm2d(64),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.ConvTranspose2d(64, 16, 2, 2),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(16, 10),
).cuda()
recurrent = nn.LSTM(10, 20, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(3):
    images = torch.randn(8, 3, 64, 64, device="cuda")
    labels = torch.randint(0, 10, (8,), device="cuda")
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
output, _ = recurrent(torch.randn(5, 3, 10, device="cuda"))
output.sum().backward()
torch.cuda.synchronize()
print("trained", loss.item())
