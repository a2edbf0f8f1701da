"""Trains in steps under PyTorch's profiler with profile_memory=True, and fails one request.

    profiled.py PROFILE

It prints PyTorch's own peaks of allocated and reserved bytes. The profile begins before the first block.
"""

import sys

import torch


def model():
    layers = []
    for _ in range(4):
        layers += [torch.nn.Linear(1024, 1024, device="cuda"), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers)


def train(layers, optimizer, batch):
    optimizer.zero_grad()
    layers(torch.ones(batch, 1024, device="cuda")).sum().backward()
    optimizer.step()


with torch.profiler.profile(
    activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, with_stack=True
) as profiler:
    layers = model()
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1, momentum=0.9)
    for number in range(4):
        with torch.profiler.record_function("training step"):
            train(layers, optimizer, 256 + 64 * number)
    try:
        torch.empty(1 << 45, device="cuda")
    except torch.OutOfMemoryError:
        pass
profiler.export_chrome_trace(sys.argv[1])
print(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
