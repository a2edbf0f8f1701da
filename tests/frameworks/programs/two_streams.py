"""Blocks that other streams still use when they are freed, and later allocations."""

import random

import torch
from common import MIB, say, tensor

generator = random.Random(3)
streams = [torch.cuda.default_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
kept = []
for step in range(300):
    with torch.cuda.stream(generator.choice(streams)):
        made = tensor(generator.choice([700, 40_000, 3 * MIB, 9 * MIB, 21 * MIB]))
    if step % 3 == 0:
        made.record_stream(generator.choice(streams))
    kept.append(made)
    if len(kept) > 20:
        del made
        kept.pop(generator.randrange(len(kept)))
    if step % 50 == 49:
        torch.cuda.synchronize()
say()
