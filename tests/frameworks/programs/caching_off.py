"""Caching is switched off for three requests. Their memory is freed after it is on again."""

import torch
from common import MIB, tensor

kept = [tensor(100 * MIB) for _ in range(3)]
torch.cuda.memory.caching_allocator_enable(False)
past = [tensor(100 * MIB) for _ in range(3)]
torch.cuda.memory.caching_allocator_enable(True)
kept += [tensor(100 * MIB) for _ in range(2)]
del past
kept.append(tensor(100 * MIB))
