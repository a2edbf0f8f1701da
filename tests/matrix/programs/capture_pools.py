"""Captures into pools of every kind: by handle, of a MemPool, and used within a capture. Also a raw request
within a capture.

The default pool has cached memory that a capture must not release.
"""

import torch
from models import MIB, tensor

handle = torch.cuda.graph_pool_handle()
shared, inner = torch.cuda.MemPool(), torch.cuda.MemPool()
side = torch.cuda.Stream()
graphs, kept = [], []


def capture(pool, *sizes):
    """torch.cuda.graph empties the cache on entry. Memory freed after that stays cached."""
    graphs.append(torch.cuda.CUDAGraph())
    with torch.cuda.graph(graphs[-1], pool=pool):
        del cached[:2]
        for size in sizes:
            kept.append(tensor(size * MIB))
            scratch = tensor((size + 11) * MIB)
            del scratch


cached = [tensor(size * MIB) for size in (30, 6, 22, 45, 28, 36, 40, 25)]
with torch.cuda.use_mem_pool(shared):
    kept.append(tensor(13 * MIB))
    scratch = tensor(24 * MIB)
    del scratch
capture(handle, 4, 12)
capture(shared.id, 8, 17)
with torch.cuda.use_mem_pool(shared):
    kept.append(tensor(19 * MIB))
capture(handle, 9)
graphs.append(torch.cuda.CUDAGraph())
with torch.cuda.graph(graphs[-1]):
    del cached[:]
    kept.append(tensor(7 * MIB))
    with torch.cuda.use_mem_pool(inner):
        kept.append(tensor(33 * MIB))
    raw = torch.cuda.caching_allocator_alloc(26 * MIB, stream=side)
kept.append(tensor(60 * MIB))
torch.cuda.caching_allocator_delete(raw)
with torch.cuda.use_mem_pool(inner):
    kept.append(tensor(50 * MIB))
torch.cuda.empty_cache()
kept.append(tensor(70 * MIB))
