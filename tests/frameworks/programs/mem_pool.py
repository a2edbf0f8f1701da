"""Two MemPools in addition to the default pool. One of them is dropped, and its memory is released."""

import torch
from common import MIB, not_here, say, tensor

if not hasattr(torch.cuda, "MemPool") or not hasattr(torch.cuda, "use_mem_pool"):
    not_here("MemPool")
kept = [tensor(5 * MIB)]
first, second = torch.cuda.MemPool(), torch.cuda.MemPool()
used = []
for step in range(12):
    with torch.cuda.use_mem_pool(first if step % 2 else second):
        used += [tensor(3 * MIB + step), tensor(1000 * (step + 1))]
    kept.append(tensor(7 * MIB + step))
    if step % 3 == 2:
        del used[0]
counts = [first.use_count(), second.use_count()] if hasattr(first, "use_count") else []
used = used[1::4]
torch.cuda.empty_cache()
with torch.cuda.use_mem_pool(first):
    used.append(tensor(30 * MIB))
ids = [list(first.id), list(second.id)]
used = used[:1]
del first
torch.cuda.empty_cache()
kept.append(tensor(11 * MIB))
say(pools=ids, use_counts=counts)
