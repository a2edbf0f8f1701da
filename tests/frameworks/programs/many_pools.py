"""More MemPools at once than the recorder has room for."""

import torch
from common import MIB, not_here, say, tensor

if not hasattr(torch.cuda, "MemPool") or not hasattr(torch.cuda, "use_mem_pool"):
    not_here("MemPool")
pools = [torch.cuda.MemPool() for _ in range(1100)]
kept = []
for pool in pools[-2:]:
    with torch.cuda.use_mem_pool(pool):
        kept.append(tensor(3 * MIB))
say(pools=len(pools))
