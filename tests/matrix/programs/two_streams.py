"""Blocks allocated on one stream and used on another one, which their frees wait for."""

import random

import torch
from models import MIB, tensor

choice = random.Random(7)
side = torch.cuda.Stream()
kept = []
for step in range(240):
    with torch.cuda.stream(side if step % 3 == 0 else torch.cuda.default_stream()):
        made = tensor(choice.choice((90_000, 700_000, 3 * MIB, 9 * MIB, 21 * MIB, 37 * MIB)))
    if step % 2:
        made.record_stream(side)
    kept.append(made)
    del made
    if len(kept) > 14:
        del kept[choice.randrange(len(kept))]
    if step % 60 == 59:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
