"""Ordinary requests, also through the raw interface, for runs with another allocator."""

import sys

import torch
from common import MIB, say, tensor

kept = [tensor(5000), tensor(3 * MIB), tensor(21 * MIB)]
with torch.cuda.stream(torch.cuda.Stream()) as stream:
    kept.append(tensor(70_000))
del kept[1]
if "switch" in sys.argv:
    torch.cuda.memory.caching_allocator_enable(False)
    kept += [tensor(123_456), tensor(9 * MIB + 1)]
    del kept[-1]
    torch.cuda.memory.caching_allocator_enable(True)
    kept.append(tensor(4 * MIB))
say(backend=torch.cuda.get_allocator_backend())
