"""A memory fraction that is set and raised at run time, and calls that free nothing."""

import random

import torch
from models import MIB, tensor

torch.cuda.set_per_process_memory_fraction(0.6)
choice = random.Random(10)
kept = []
for step in range(120):
    kept.append(tensor(choice.choice((50_000, 1_500_000, 6 * MIB, 11 * MIB, 24 * MIB))))
    if len(kept) > 10 + step // 12:
        del kept[choice.randrange(len(kept))]
    if step % 20 == 0:
        torch.cuda.empty_cache()
        torch.cuda.empty_cache()
    if step == 60:
        torch.cuda.set_per_process_memory_fraction(0.9)
