"""Settings that the program changes after its first half."""

import random

import torch
from models import MIB, tensor

choice = random.Random(11)


def work():
    kept = []
    for _ in range(80):
        kept.append(tensor(choice.choice((70_000, 1_300_000, 5 * MIB + 9, 12 * MIB, 30 * MIB, 80 * MIB))))
        if len(kept) > 12:
            del kept[choice.randrange(len(kept))]
    return kept[::2]


first = work()
torch._C._accelerator_setAllocatorSettings("max_split_size_mb:70,roundup_power2_divisions:8")
second = work()
