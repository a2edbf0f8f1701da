"""Two MemPools in addition to the default pool. One of them is dropped halfway."""

import random

import torch
from models import MIB, tensor

choice = random.Random(8)
pools = [torch.cuda.MemPool(), torch.cuda.MemPool()]
kept = []
for step in range(150):
    size = choice.choice((4000, 600_000, 2 * MIB + 5, 8 * MIB, 13 * MIB, 26 * MIB))
    if step % 3 < len(pools):
        with torch.cuda.use_mem_pool(pools[step % 3]):
            kept.append(tensor(size))
    else:
        kept.append(tensor(size))
    if len(kept) > 16:
        del kept[choice.randrange(len(kept))]
    if step == 75:
        pools.pop()
        torch.cuda.empty_cache()
