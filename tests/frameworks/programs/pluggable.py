"""A pluggable allocator: pluggable.py LIBRARY [pool], for everything or for the segments of a pool."""

import sys

import torch
from common import MIB, not_here, say, tensor

library = sys.argv[1]
allocator = torch.cuda.memory.CUDAPluggableAllocator(library, "plain_alloc", "plain_free")
if "pool" not in sys.argv:
    torch.cuda.memory.change_current_allocator(allocator)
    kept = [tensor(5000), tensor(3 * MIB + 1), tensor(7)]
    del kept[1]
    say()
if not hasattr(torch.cuda, "MemPool") or not hasattr(torch.cuda, "use_mem_pool"):
    not_here("MemPool")
pool = torch.cuda.MemPool(allocator.allocator())
kept = [tensor(5000)]
with torch.cuda.use_mem_pool(pool):
    kept += [tensor(3 * MIB + 1), tensor(700)]
say(pools=[list(pool.id)])
